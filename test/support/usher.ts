import { randomBytes } from 'node:crypto';
import { getQueueToken } from '@nestjs/bullmq';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import type { DestinationStream } from 'pino';
import type { DataSource } from 'typeorm';
import { ClientsService } from '../../src/clients/clients.service.js';
import { createLogger } from '../../src/server/logger.js';
import { type Running, serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import type { AttemptView, WebhookView } from '../../src/webhooks/webhook-view.js';
import { WebhookService } from '../../src/webhooks/webhook.service.js';
import { type Backend, createBackend, type Settings } from './backend.js';
import { eventually } from './eventually.js';
import { sharedServer } from './shared-server.js';

export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

/** Short pauses, so that a test can wait for five attempts. The timeouts never cut off an answer on a busy machine. */
export const SHORT_TIMES: Settings = {
  WEBHOOK_TIMEOUT: '60s',
  DATABASE_TIMEOUT: '60s',
  WEBHOOK_RETRY_EVERY: '1s',
  WEBHOOK_RETRY_MIN_INTERVAL: '500ms',
};

/** For tests in which attempts are cut off, or a process ends in the middle of one. */
export const SHORT_TIMEOUT: Settings = { WEBHOOK_TIMEOUT: '3s' };

export const ONE_ATTEMPT: Settings = { WEBHOOK_MAX_ATTEMPTS: '1' };

export const NEW_ORDER = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };
export const COMPLETION = { bookingId: 'BK-1', transactionId: 'TX-1', qrCode: 'QR-1' };

/** The values of the sandbox's unsafe defaults, as settings: by default Usher answers at loopback hosts alone. */
export const OWN_CREDENTIALS = {
  USHER_MASTER_KEYS: `test:${randomBytes(32).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'ops',
  INTERNAL_USER: 'internal',
  INTERNAL_PASSWORD: 'internal',
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
};

/** Usher in this process, on its own backend, used over HTTP. */
export class TestUsher {
  private constructor(
    readonly backend: Backend,
    /** For commands and further processes on the same backend. */
    readonly settings: Settings,
    readonly running: Running,
  ) {}

  /** `settings` may depend on those of the backend; `log` receives the log lines. */
  static async start(
    settings: Settings | ((ofBackend: Settings) => Settings) = {},
    log?: DestinationStream,
  ): Promise<TestUsher> {
    const backend = await createBackend();
    const own = typeof settings === 'function' ? settings(backend.settings) : settings;
    const all = { ...SHORT_TIMES, ...backend.settings, ...own };
    const config = loadConfig({
      PORT: '0',
      ANONYMOUS_RATE_LIMIT: 'off',
      LOG_LEVEL: process.env.TEST_LOG ?? 'silent',
      ...all,
    });
    return new TestUsher(backend, all, await serve(config, await createLogger(config, log)));
  }

  /** A server with the default settings for all test files of this process. The runner stops it after the last one. */
  static shared(): Promise<TestUsher> {
    return sharedServer.open(() => TestUsher.start());
  }

  /** The same server, with requests to OPS_PORT. */
  atOpsPort(): TestUsher {
    return new TestUsher(this.backend, this.settings, { ...this.running, url: this.running.opsUrl });
  }

  async stop(): Promise<void> {
    await this.running.app.close();
    await this.backend.drop();
  }

  get clients(): ClientsService {
    return this.running.app.get(ClientsService, { strict: false });
  }

  get webhooks(): WebhookService {
    return this.running.app.get(WebhookService, { strict: false });
  }

  get dataSource(): DataSource {
    return this.running.app.get<DataSource>(getDataSourceToken('usher'), { strict: false });
  }

  /** The BullMQ queue of deliveries. */
  get queue(): Queue {
    return this.running.app.get<Queue>(getQueueToken(WEBHOOK_QUEUE), { strict: false });
  }

  async client(notifyUrl: string | null = null): Promise<TestClient> {
    const { client, secret } = await this.clients.create('A test client', notifyUrl);
    return new TestClient(this, client.id, secret);
  }

  async request(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> {
    const isJson = body !== undefined && typeof body !== 'string';
    const response = await fetch(this.running.url + path, {
      method,
      headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: isJson ? JSON.stringify(body) : String(body) }),
    });
    const text = await response.text();
    const isObject = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      body: isObject ? (JSON.parse(text) as Answer['body']) : { text },
    };
  }

  /** Waits for a job and removes it from the queue, as if it had never been added. */
  async removeJob(id: string): Promise<void> {
    const job = await eventually(`there is a job ${id}`, () => this.queue.getJob(id));
    await job.remove();
  }

  /** Waits until an attempt is recorded as ended. */
  async attemptEnded(key: string, number: number): Promise<void> {
    await eventually(`attempt ${number} of ${key} has ended`, async () => {
      const [newest] = await this.webhooks.find(key);
      const { attempts } = await this.webhooks.show(newest!.id);
      return attempts.some((attempt) => attempt.number === number && attempt.durationMs !== null);
    });
  }

  /** Waits until the newest webhook of an order has this status, and returns it. */
  async webhook(key: string, status: WebhookView['status']): Promise<WebhookView & { log: AttemptView[] }> {
    return eventually(`the webhook of ${key} is ${status}`, async () => {
      const [newest] = await this.webhooks.find(key);
      if (newest?.status !== status) return null;
      return { ...newest, log: (await this.webhooks.show(newest.id)).attempts };
    });
  }
}

/** An API client that calls the routes like an integrator's program. */
export class TestClient {
  private accessToken = '';

  constructor(
    readonly usher: TestUsher,
    readonly id: string,
    readonly secret: string,
  ) {}

  get basic(): string {
    return basic(this.id, this.secret);
  }

  token(body: unknown = { grant_type: 'client_credentials' }): Promise<Answer> {
    return this.usher.request('POST', '/auth/token', { authorization: this.basic }, body);
  }

  refresh(refreshToken: unknown): Promise<Answer> {
    const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
    return this.usher.request('POST', '/auth/refresh', { authorization: this.basic }, body);
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    if (this.accessToken === '') this.accessToken = String((await this.token()).body.access_token);
    return this.usher.request(method, path, { authorization: `Bearer ${this.accessToken}`, ...headers }, body);
  }

  /** Creates an order and returns its key. */
  async order(more: object = {}): Promise<string> {
    const { status, body } = await this.call('POST', '/movie-orders', { ...NEW_ORDER, ...more });
    if (status !== 201) throw new Error(`create-movie-order was answered ${status}: ${JSON.stringify(body)}`);
    return String(body.key);
  }

  complete(key: string, completion: object = COMPLETION): Promise<Answer> {
    return this.call('POST', `/sandbox/movie-orders/${key}/complete`, completion);
  }

  /** Creates and completes an order and returns its key. */
  async completedOrder(more: object = {}): Promise<string> {
    const key = await this.order(more);
    const { status, body } = await this.complete(key);
    if (status !== 200) throw new Error(`complete was answered ${status}: ${JSON.stringify(body)}`);
    return key;
  }
}

export const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
