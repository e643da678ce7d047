import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import { HOST_COUNT } from './behaviour.js';
import type { Options } from './options.js';

export interface Credentials {
  id: string;
  secret: string;
}

interface Reply {
  status: number;
  body: Record<string, unknown>;
}

/** An answer that no fault explains: it is not tried again. */
class StrangeAnswer extends Error {}

const AT_ONCE = { services: 24, embedded: 4 };
/** Orders come in bursts, so that a fault finds many sends under way. */
const BURST = 50;
const REQUEST_MS = 10_000;
/** After it an order is given up, which is a fault of the run. */
const ORDER_MS = 300_000;
const ORDER = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };

/** Integrators and the cinema operator: they create and complete orders over REST, whatever happens meanwhile. */
export class Producers {
  /** Keys of the orders whose completion was answered 200. */
  readonly acknowledged: string[] = [];
  readonly strange: string[] = [];
  private readonly random: Random;
  private next = 0;
  private token = '';

  constructor(
    private readonly urls: string[],
    private readonly client: Credentials,
    private readonly receiverPorts: number[],
    private readonly options: Options,
  ) {
    this.random = Random.of(options.seed, 'producers');
  }

  /** Spreads the orders over `durationMs`. */
  async run(durationMs: number): Promise<void> {
    const body = { grant_type: 'client_credentials' };
    const authorization = `Basic ${Buffer.from(`${this.client.id}:${this.client.secret}`).toString('base64')}`;
    this.token = String((await this.insist('/auth/token', authorization, body)).body.access_token);
    const startedAt = Date.now();
    await Promise.all(Array.from({ length: AT_ONCE[this.options.backend] }, () => this.produce(startedAt, durationMs)));
  }

  private async produce(startedAt: number, durationMs: number): Promise<void> {
    while (this.next < this.options.orders) {
      const order = this.next;
      this.next += 1;
      const burst = Math.floor(order / BURST) * BURST;
      await sleep(Math.max(0, startedAt + (burst / this.options.orders) * durationMs - Date.now()));
      await this.oneOrder(order).catch((error: unknown) => {
        this.strange.push(`order ${order}: ${(error as Error).message}`);
      });
    }
  }

  private async oneOrder(order: number): Promise<void> {
    const port = this.receiverPorts[Random.of(this.options.seed, 'host', order).between(0, HOST_COUNT - 1)];
    const notifyUrl = `http://127.0.0.1:${port}/orders/${order}`;
    const { body } = await this.insist('/movie-orders', this.bearer, { ...ORDER, notifyUrl });
    const key = String(body.key);
    // Now and then two complete the same order at once, as a client that lost patience does.
    const twice = this.random.next() < 0.1;
    await Promise.all([this.complete(order, key), twice && this.complete(order, key)]);
    this.acknowledged.push(key);
  }

  private async complete(order: number, key: string): Promise<void> {
    const completion = { bookingId: `BK-${order}`, transactionId: `TX-${order}`, qrCode: `QR-${order}` };
    await this.insist(`/sandbox/movie-orders/${key}/complete`, this.bearer, completion);
  }

  private get bearer(): string {
    return `Bearer ${this.token}`;
  }

  /** Asks until it is answered 2xx. A creation whose answer got lost is simply done anew: its order stays PENDING. */
  private async insist(path: string, authorization: string, body: object): Promise<Reply> {
    const until = Date.now() + ORDER_MS;
    for (;;) {
      const reply = await this.ask(this.random.pick(this.urls) + path, authorization, body);
      if (reply && reply.status < 300) return reply;
      if (reply && reply.status < 500) throw new StrangeAnswer(`${path} was answered ${reply.status}`);
      if (Date.now() > until) throw new StrangeAnswer(`${path} got no answer in ${ORDER_MS / 1_000} s`);
      await sleep(this.random.between(100, 600));
    }
  }

  /** Null where nothing, or only a part of an answer, came. */
  private async ask(url: string, authorization: string, body: object): Promise<Reply | null> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      return { status: response.status, body: (await response.json()) as Reply['body'] };
    } catch {
      return null;
    }
  }
}
