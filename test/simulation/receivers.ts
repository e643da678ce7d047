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
}

/** How a receiver answers one request. A null status means no answer. */
interface Reply {
  status: number | null;
  afterMs: number;
}

const BEHAVIOURS: ((random: Random) => Reply)[] = [
  () => ({ status: 200, afterMs: 20 }),
  (random) => ({ status: random.chance(0.5) ? 200 : 500, afterMs: random.between(5, 2_000) }),
  () => ({ status: 503, afterMs: 10 }),
  () => ({ status: 302, afterMs: 10 }),
  () => ({ status: null, afterMs: 0 }),
  (random) => ({ status: 200, afterMs: random.between(25_000, 45_000) }),
  (random) => ({ status: random.chance(0.3) ? 204 : null, afterMs: random.between(0, 29_999) }),
];

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
    const { status, afterMs } = behave!(this.random);
    const arrival: Arrival = { webhook: headers['X-Webhook-Id'] ?? '', at: this.time.now, acceptedAt: null };
    this.log.push(arrival);
    if (status !== null && status < 300)
      this.time.at(this.time.now + afterMs, () => (arrival.acceptedAt = this.time.now));
    const inTime = status !== null && afterMs < this.timeoutMs;
    await this.time.sleep(inTime ? afterMs : this.timeoutMs);
    const facts = {
      durationMs: inTime ? afterMs : this.timeoutMs,
      address: '127.0.0.1',
      phase: 'headers' as const,
      snippet: '',
    };
    if (!inTime) return { kind: 'timed-out', ...facts };
    return status < 300 ? { kind: 'delivered', status, ...facts } : { kind: 'refused', status, ...facts };
  }
}
