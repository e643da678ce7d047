import { EventEmitter, once } from 'node:events';
import { ClientsService } from '../clients/clients.service.js';
import { type Running, serve } from '../server/serve.js';
import type { Config } from '../server/settings/settings.js';
import { type LocalReceiver, type Received, type ReceiverOptions, startLocalReceiver } from './local-receiver.js';

type Step = [title: string, run: () => Promise<string>];
type Json = Record<string, string | number>;

const NOTIFICATION_TIMEOUT_MS = 30_000;

/** The steps of the demo. They use the same REST routes as an integrator, and each returns what it did. */
export class DemoRun {
  private running: Running | undefined;
  private receiver: LocalReceiver | undefined;
  private readonly received = new EventEmitter<{ notification: [Received] }>();
  /** The receiver reads these at each request, so a step can change them. */
  private readonly receiverOptions: ReceiverOptions = {
    port: 0,
    secret: '',
    status: null,
    delayMs: 0,
    failFirst: 0,
    forwardTo: null,
    onReceived: (received) => this.received.emit('notification', received),
  };
  private clientId = '';
  private tokens: Json = {};

  constructor(private readonly config: Config) {}

  steps(): Step[] {
    return [
      ['start Usher on the embedded database', () => this.startUsher()],
      ['start a receiver', () => this.startReceiver()],
      ['issue a client with that Notify URL', () => this.issueClient()],
      ['exchange its id and secret for tokens', () => this.requestTokens()],
      ['create and complete a movie order', () => this.completeOrder('first')],
      ['complete a second order; its receiver fails once', () => this.failOnce()],
      ['refresh the access token', () => this.refresh()],
    ];
  }

  async close(): Promise<void> {
    this.receiver?.close();
    await this.running?.app.close();
  }

  private async startUsher(): Promise<string> {
    this.running = await serve(this.config);
    return this.running.url;
  }

  private async startReceiver(): Promise<string> {
    this.receiver = await startLocalReceiver(this.receiverOptions);
    return this.receiver.url;
  }

  private async issueClient(): Promise<string> {
    const clients = this.usher.app.get(ClientsService, { strict: false });
    const { client, secret } = await clients.create('Demo', this.receiver?.url ?? null);
    this.clientId = client.id;
    this.receiverOptions.secret = secret;
    return `client_id ${client.id}`;
  }

  private async requestTokens(): Promise<string> {
    this.tokens = await this.post('/auth/token', this.basic, { grant_type: 'client_credentials' });
    return `${this.tokens.token_type}, valid for ${this.tokens.expires_in} s`;
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

  private async failOnce(): Promise<string> {
    this.receiverOptions.failFirst = 1;
    const first = await this.completeOrder('second');
    const second = await this.nextNotification();
    if (second.answered !== 200) throw new Error(`the retry was answered ${second.answered}`);
    return `${first}; retried: attempt ${second.attempt}, answered ${second.answered}`;
  }

  private async refresh(): Promise<string> {
    const refreshed = await this.post('/auth/refresh', this.basic, {
      grant_type: 'refresh_token',
      refresh_token: this.tokens.refresh_token ?? '',
    });
    if (refreshed.access_token === this.tokens.access_token) throw new Error('the access token has not changed');
    return 'a new access token, the same refresh token';
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
