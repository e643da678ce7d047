import type { SignedRequest } from '../../src/webhooks/transport/notification-sender.js';
import type { Outcome } from '../../src/webhooks/transport/outcome.js';
import type { Random } from '../support/random.js';
import type { VirtualTime } from './virtual-time.js';

/** One request that arrived at a receiver. */
export interface Arrival {
  webhook: string;
  at: number;
  /** When the receiver sent a 2xx, or null. */
  acceptedAt: number | null;
  /** X-Webhook-Attempt. */
  attempt: number;
  /** When the attempt ended with an answer, or by its timeout. */
  endedAt: number;
  /** What a Retry-After in the answer asked for, in milliseconds, or 0. */
  retryAfterMs: number;
}

/** How a receiver answers one request. A null status means no answer. */
interface Reply {
  status: number | null;
  afterMs: number;
  retryAfterMs?: number;
}

/** Less than the minimum interval, and up to more than Usher waits. */
const ASKED_SECONDS = [0, 10, 29, 31, 100, 150, 200, 270, 400, 3_600];

const BEHAVIOURS: ((random: Random) => Reply)[] = [
  () => ({ status: 200, afterMs: 20 }),
  (random) => ({ status: random.chance(0.5) ? 200 : 500, afterMs: random.between(5, 2_000) }),
  () => ({ status: 503, afterMs: 10 }),
  () => ({ status: 302, afterMs: 10 }),
  () => ({ status: null, afterMs: 0 }),
  (random) => ({ status: 200, afterMs: random.between(25_000, 45_000) }),
  (random) => ({ status: random.chance(0.3) ? 204 : null, afterMs: random.between(0, 29_999) }),
  (random) => ({
    status: random.pick([429, 503]),
    afterMs: random.between(5, 29_000),
    retryAfterMs: random.pick(ASKED_SECONDS) * 1_000,
  }),
];
export const BEHAVIOUR_COUNT = BEHAVIOURS.length;

/** Scripted receivers that replace the network. Their log is checked after the schedule. */
export class Receivers {
  readonly log: Arrival[] = [];

  constructor(
    private readonly time: VirtualTime,
    private readonly random: Random,
    private readonly timeoutMs: number,
  ) {}

  async post({ url, headers }: SignedRequest): Promise<Outcome> {
    const behave = BEHAVIOURS[Number(new URL(url).pathname.slice(1)) % BEHAVIOURS.length] ?? BEHAVIOURS[0];
    const { status, afterMs, retryAfterMs = 0 } = behave!(this.random);
    const inTime = status !== null && afterMs < this.timeoutMs;
    const durationMs = inTime ? afterMs : this.timeoutMs;
    const arrival: Arrival = {
      webhook: headers['X-Webhook-Id'] ?? '',
      attempt: Number(headers['X-Webhook-Attempt']),
      at: this.time.now,
      acceptedAt: null,
      endedAt: this.time.now + durationMs,
      retryAfterMs: inTime ? retryAfterMs : 0,
    };
    this.log.push(arrival);
    if (status !== null && status < 300)
      this.time.at(this.time.now + afterMs, () => (arrival.acceptedAt = this.time.now));
    await this.time.sleep(durationMs);
    const facts = {
      durationMs,
      address: '127.0.0.1',
      phase: 'headers' as const,
      snippet: '',
    };
    if (!inTime) return { kind: 'timed-out', ...facts };
    return status < 300 ? { kind: 'delivered', status, ...facts } : { kind: 'refused', status, retryAfterMs, ...facts };
  }
}
