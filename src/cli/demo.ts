import { EventEmitter, once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import {
  bold,
  dim,
  green,
  type LocalReceiver,
  type Received,
  type ReceiverOptions,
  red,
  startLocalReceiver,
} from '../../packages/receiver/dist/tools.js';
import { faultLine } from '../server/fault.js';
import type { Running } from '../server/serve.js';
import { type Config, loadConfig } from '../server/settings/settings.js';
import { StartUpError } from '../values/start-up-error.js';
import { command } from './command.js';
import type { Output } from './output.js';

const RETRY_EVERY = '2s';
const RETRY_MIN_INTERVAL = '1s';

export function addDemo(program: Command): void {
  const description = 'show token, order and notification on this machine, in a temporary folder';
  command(program, 'demo', description, async (_options: object, asJson: boolean): Promise<Output | null> => {
    const steps = await demo(asJson ? () => undefined : say);
    const ok = steps.every((step) => step.ok);
    process.exitCode = ok ? 0 : 1;
    return asJson ? { json: { ok, steps } } : null;
  });
}

async function demo(say: (text: string) => void): Promise<StepResult[]> {
  const folder = await temporaryFolder();
  removeOnSignal(folder);
  const run = new DemoRun(
    loadConfig({
      PORT: '0',
      DATABASE_URL: `embedded:${folder}`,
      LOG_LEVEL: 'silent',
      WEBHOOK_RETRY_EVERY: RETRY_EVERY,
      WEBHOOK_RETRY_MIN_INTERVAL: RETRY_MIN_INTERVAL,
    }),
  );
  say(`${bold('Usher demo')}: everything runs on this machine, in a temporary folder.`);
  say(
    dim(
      `Times are shortened: a retry run every ${RETRY_EVERY} (normally 2m), ${RETRY_MIN_INTERVAL} between attempts (normally 30s).\n`,
    ),
  );
  try {
    const results: StepResult[] = [];
    for (const [title, step] of Object.entries(run.steps)) {
      const result = await runStep(title, step);
      results.push(result);
      say(lineOf(result));
      if (!result.ok) return results;
    }
    say(`\n${bold('Done.')} Next: docs/quick-start.md shows the same steps with curl.`);
    return results;
  } finally {
    await run.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function temporaryFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), 'usher-demo-'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartUpError(
      `no folder can be created in ${tmpdir()} (${code}); set TMPDIR to a folder that this user may write to`,
    );
  }
}

/**
 * Removes the folder if a signal ends the demo, in any step: everything runs in this process, so nothing else stays. Nothing
 * is awaited, because a start in progress would write into the folder again.
 */
function removeOnSignal(folder: string): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
      // By convention the exit code is 128 more than the number of the signal.
      process.exit(128 + constants.signals[signal]);
    });
  }
}

interface StepResult {
  step: string;
  ok: boolean;
  detail: string;
}

async function runStep(step: string, run: () => Promise<string>): Promise<StepResult> {
  try {
    return { step, ok: true, detail: await run() };
  } catch (error) {
    return { step, ok: false, detail: faultLine(error) };
  }
}

function lineOf({ step, ok, detail }: StepResult): string {
  const [symbol, colour] = ok ? [green('✓'), dim] : [red('✗'), red];
  return `${symbol} ${step.padEnd(48)} ${colour(detail)}`;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

type Json = Record<string, string | number>;

const NOTIFICATION_TIMEOUT_MS = 30_000;

/** The steps of the demo. They use the same REST routes as an integrator, and each returns what it did. */
class DemoRun {
  private running: Running | undefined;
  private receiver: LocalReceiver | undefined;
  private readonly received = new EventEmitter<{ notification: [Received] }>();
  /** The receiver reads these at each request, so a step can change them. */
  private readonly receiverOptions: ReceiverOptions = {
    port: 0,
    secret: '',
    onReceived: (received) => this.received.emit('notification', received),
  };
  private clientId = '';
  private tokens: Json = {};

  constructor(private readonly config: Config) {}

  readonly steps: Record<string, () => Promise<string>> = {
    'start Usher on the embedded database': async () => {
      // Loaded only now, so that the help of other commands is quick.
      const { serve } = await import('../server/serve.js');
      this.running = await serve(this.config);
      return this.running.url;
    },
    'start a receiver': async () => {
      this.receiver = await startLocalReceiver(this.receiverOptions);
      return this.receiver.url;
    },
    'issue a client with that Notify URL': async () => {
      const { ClientsService } = await import('../clients/clients.service.js');
      const clients = this.usher.app.get(ClientsService, { strict: false });
      const { client, secret } = await clients.create('Demo', this.receiver?.url ?? null);
      this.clientId = client.id;
      this.receiverOptions.secret = secret;
      return `client_id ${client.id}`;
    },
    'exchange its id and secret for tokens': async () => {
      this.tokens = await this.post('/auth/token', this.basic, { grant_type: 'client_credentials' });
      return `${this.tokens.token_type}, valid for ${this.tokens.expires_in} s`;
    },
    'create and complete a movie order': () => this.completeOrder('first'),
    'complete a second order; its receiver fails once': async () => {
      this.receiverOptions.failFirst = 1;
      const first = await this.completeOrder('second');
      const second = await this.nextNotification();
      if (second.answered !== 200) throw new Error(`the retry was answered ${second.answered}`);
      return `${first}; retried: attempt ${second.attempt}, answered ${second.answered}`;
    },
    'refresh the access token': async () => {
      const refreshed = await this.post('/auth/refresh', this.basic, {
        grant_type: 'refresh_token',
        refresh_token: this.tokens.refresh_token ?? '',
      });
      if (refreshed.access_token === this.tokens.access_token) throw new Error('the access token has not changed');
      return 'a new access token, the same refresh token';
    },
  };

  async close(): Promise<void> {
    this.receiver?.close();
    await this.running?.app.close();
  }

  private async completeOrder(name: string): Promise<string> {
    const { key } = await this.post('/movie-orders', this.bearer, {
      currencyCode: 'MYR',
      totalAmount: 4200,
      bookingAmount: 200,
      payableAmount: 4200,
    });
    const arrived = this.nextNotification();
    const completion = { bookingId: `booking-${name}`, transactionId: `payment-${name}`, qrCode: `QR-${name}` };
    await this.post(`/sandbox/movie-orders/${key}/complete`, this.bearer, completion);
    return describeReceived(await arrived, String(key));
  }

  private async nextNotification(): Promise<Received> {
    const [received] = (await once(this.received, 'notification', {
      signal: AbortSignal.timeout(NOTIFICATION_TIMEOUT_MS),
    }).catch(() => {
      throw new Error(`no notification came within ${NOTIFICATION_TIMEOUT_MS / 1_000} s`);
    })) as [Received];
    return received;
  }

  private async post(path: string, authorization: string, body: Json): Promise<Json> {
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(this.usher.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as Json;
    if (!response.ok) throw new Error(`POST ${path} was answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  }

  private get usher(): Running {
    if (!this.running) throw new Error('Usher is not running');
    return this.running;
  }

  private get basic(): string {
    return `Basic ${Buffer.from(`${this.clientId}:${this.receiverOptions.secret}`).toString('base64')}`;
  }

  private get bearer(): string {
    return `Bearer ${this.tokens.access_token}`;
  }
}

function describeReceived({ notification, fault, answered, attempt }: Received, key: string): string {
  if (!notification) throw new Error(`the signature is invalid: ${fault?.hint}`);
  if (notification.data.key !== key) throw new Error('the notification is for another order');
  return `notified, signature valid: attempt ${attempt}, answered ${answered}`;
}
