import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { answer, hang, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

const ORDERS = 40;
const MIN_INTERVAL_MS = 500;
const BUILT = 'node_modules/.cache/usher-test';

let backend: Backend;
let receiver: TestReceiver;
let server: Server;

interface Listed {
  id: string;
  referenceId: string;
  status: string;
  attempts: number;
}

const environment = (): NodeJS.ProcessEnv => {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, PORT: '0', LOG_LEVEL: process.env.TEST_LOG ?? 'silent', ...SHORT_TIMES, ...backend.settings };
};

/** A server process of its own. */
class Server {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  static async start(): Promise<Server> {
    const child = spawn(process.execPath, [join(BUILT, 'main.js')], { env: environment() });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
    const url = await eventually('the server listens', () => {
      if (child.exitCode !== null) throw new Error(said);
      return /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
    });
    return new Server(child, url);
  }

  /** kill -9 */
  async crash(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }
}

async function cli<T>(...words: string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(BUILT, 'cli.js'), ...words, '--json'], {
    env: environment(),
  });
  return JSON.parse(stdout) as T;
}

async function post<T>(path: string, authorization: string, body: object): Promise<T> {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as T;
}

async function bearer(): Promise<string> {
  const { client_id: id, client_secret: secret } = await cli<{ client_id: string; client_secret: string }>(
    ...['client', 'create', '--name', 'Crash', '--notify-url', receiver.url],
  );
  const { access_token: token } = await post<{ access_token: string }>('/auth/token', basic(id, secret), {
    grant_type: 'client_credentials',
  });
  return `Bearer ${token}`;
}

beforeAll(async () => {
  backend = await createBackend();
  receiver = await TestReceiver.start();
  server = await Server.start();
});
afterAll(async () => {
  await server.crash();
  await backend.drop();
  receiver.close();
});

describe('a server killed in the middle of its deliveries and started again', () => {
  let keys: string[];
  let webhooks: Listed[];

  beforeAll(async () => {
    const authorization = await bearer();
    const create = () => post<{ key: string }>('/movie-orders', authorization, NEW_ORDER);
    keys = (await Promise.all(Array.from({ length: ORDERS }, create))).map(({ key }) => key);
    const held = new Set(keys.filter((_, index) => index % 3 === 0));
    const failing = new Set(keys.filter((_, index) => index % 3 === 1));
    receiver.behaviour = (response, arrival, nth) => {
      if (nth === 1 && held.has(arrival.key)) hang(response, arrival, nth);
      else answer(nth === 1 && failing.has(arrival.key) ? 503 : 200)(response, arrival, nth);
    };
    const complete = (key: string) => post(`/sandbox/movie-orders/${key}/complete`, authorization, COMPLETION);
    const completions = Promise.allSettled(keys.map(complete));
    await eventually('deliveries are under way', () => receiver.arrivals.length >= ORDERS / 4);
    await server.crash();
    await completions;
    server = await Server.start();
    // The caller whose answer was lost asks again.
    for (const key of keys) await complete(key);
    webhooks = await eventually('no webhook is pending', async () => {
      const listed = await cli<Listed[]>('webhook', 'list', '--limit', '1000');
      return listed.every(({ status }) => status !== 'PENDING') ? listed : null;
    });
  }, 120_000);

  test('has notified every order that was completed, by one webhook each', () => {
    expect(webhooks.map(({ referenceId }) => referenceId).sort()).toEqual([...keys].sort());
    expect(new Set(webhooks.map(({ status }) => status))).toEqual(new Set(['SUCCESS']));
    for (const key of keys) expect(receiver.of(key).length).toBeGreaterThanOrEqual(1);
  });

  test('has made at most five attempts of each, every one counted', () => {
    for (const { referenceId, attempts } of webhooks) {
      expect(attempts).toBeLessThanOrEqual(5);
      const numbers = receiver.of(referenceId).map(({ headers }) => Number(headers['x-webhook-attempt']));
      expect(new Set(numbers).size).toBe(numbers.length);
      expect(Math.max(...numbers)).toBeLessThanOrEqual(attempts);
    }
  });

  test('has never made two attempts of one webhook within the minimum interval', () => {
    for (const key of keys) {
      const moments = receiver.of(key).map(({ at }) => at);
      for (const [index, at] of moments.slice(1).entries()) {
        expect(at - moments[index]!).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
      }
    }
  });
});
