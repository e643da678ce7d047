import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import type { BackendKind } from './options.js';

export interface Credentials {
  id: string;
  secret: string;
}

interface Reply {
  status: number;
  body: Record<string, unknown>;
}

/** What the producers of one client do. */
export interface Work {
  seed: number;
  backend: BackendKind;
  orders: number;
  /** The Notify URL of the order with this number. */
  urlOf: (order: number) => string;
}

/** A response that no fault explains. The request is not repeated. */
class UnexpectedResponse extends Error {}

const CONCURRENCY = { services: 24, embedded: 4 };
/** Orders come in bursts, so that a fault interrupts many deliveries. */
const BURST = 50;
const REQUEST_TIMEOUT_MS = 10_000;
/** After this time an order is given up, and the run fails. */
const ORDER_TIMEOUT_MS = 300_000;
const ORDER = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };

/** The integrators and the cinema operator: they create and complete orders over REST during all faults. */
export class Producers {
  /** Keys of the orders whose completion was answered 200. */
  readonly acknowledged: string[] = [];
  readonly unexpected: string[] = [];
  /** When the completion of each order was requested. */
  readonly requestedAt = new Map<string, number>();
  /** How long the completion of each order took, with all repetitions of the request. */
  readonly tookMs: number[] = [];
  private readonly random: Random;
  private next = 0;
  private token = '';

  constructor(
    private readonly urls: string[],
    private readonly client: Credentials,
    private readonly options: Work,
  ) {
    this.random = Random.of(options.seed, 'producers');
  }

  /** Spreads the orders over `durationMs`. */
  async run(durationMs: number): Promise<void> {
    const body = { grant_type: 'client_credentials' };
    const authorization = `Basic ${Buffer.from(`${this.client.id}:${this.client.secret}`).toString('base64')}`;
    this.token = String((await this.requestUntilDone('/auth/token', authorization, body)).body.access_token);
    const startedAt = Date.now();
    await Promise.all(
      Array.from({ length: CONCURRENCY[this.options.backend] }, () => this.produce(startedAt, durationMs)),
    );
  }

  private async produce(startedAt: number, durationMs: number): Promise<void> {
    while (this.next < this.options.orders) {
      const order = this.next;
      this.next += 1;
      const burst = Math.floor(order / BURST) * BURST;
      await sleep(Math.max(0, startedAt + (burst / this.options.orders) * durationMs - Date.now()));
      await this.oneOrder(order).catch((error: unknown) => {
        this.unexpected.push(`order ${order}: ${(error as Error).message}`);
      });
    }
  }

  private async oneOrder(order: number): Promise<void> {
    const notifyUrl = this.options.urlOf(order);
    const { body } = await this.requestUntilDone('/movie-orders', this.bearer, { ...ORDER, notifyUrl });
    const key = String(body.key);
    const requestedAt = Date.now();
    this.requestedAt.set(key, requestedAt);
    // Sometimes an order is completed twice at once, as by a client that repeats a slow request.
    const twice = this.random.next() < 0.1;
    await Promise.all([this.complete(order, key), twice && this.complete(order, key)]);
    this.acknowledged.push(key);
    this.tookMs.push(Date.now() - requestedAt);
  }

  private async complete(order: number, key: string): Promise<void> {
    const completion = { bookingId: `BK-${order}`, transactionId: `TX-${order}`, qrCode: `QR-${order}` };
    await this.requestUntilDone(`/sandbox/movie-orders/${key}/complete`, this.bearer, completion);
  }

  private get bearer(): string {
    return `Bearer ${this.token}`;
  }

  /** Repeats a request until it gets 2xx. If the response to a creation was lost, its order stays PENDING. */
  private async requestUntilDone(path: string, authorization: string, body: object): Promise<Reply> {
    const until = Date.now() + ORDER_TIMEOUT_MS;
    for (;;) {
      const reply = await this.request(this.random.pick(this.urls) + path, authorization, body);
      if (reply && reply.status < 300) return reply;
      if (reply && reply.status < 500) throw new UnexpectedResponse(`${path} was answered ${reply.status}`);
      if (Date.now() > until) throw new UnexpectedResponse(`${path} got no response in ${ORDER_TIMEOUT_MS / 1_000} s`);
      await sleep(this.random.between(100, 600));
    }
  }

  /** Null if there was no complete response. */
  private async request(url: string, authorization: string, body: object): Promise<Reply | null> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      return { status: response.status, body: (await response.json()) as Reply['body'] };
    } catch {
      return null;
    }
  }
}
