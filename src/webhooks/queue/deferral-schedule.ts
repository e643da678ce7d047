import { LRUCache } from 'lru-cache';
import type { Refusal } from './open-requests.js';

/** The longest time that a notification is deferred, in minimum intervals. */
export const MAX_DEFERRAL_INTERVALS = 8;
/** How many jobs of a slow client or host return in one minimum interval. Each costs two queue operations. */
const RETURNS_PER_INTERVAL = 750;
/** By then the first requests of an unknown host have been answered or are old. */
const FIRST_SOON_MS = 1_000;
const SOON_GAP_MS = 4;
const MAX_LINES = 10_000;

/** A line of deferred jobs: when the first returns, the time between two, and how long the line may get. */
interface Pace {
  firstMs: number;
  gapMs: number;
  longestMs: number;
}

/** Decides when the deferred jobs of a client or host return. Spreads them out so that they do not all return at once. */
export class DeferralSchedule {
  private readonly paces: Record<Refusal['retry'], Pace>;
  /** By line: when its last job returns. */
  private readonly last = new LRUCache<string, number>({ max: MAX_LINES });

  constructor(
    minIntervalMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    const longestMs = MAX_DEFERRAL_INTERVALS * minIntervalMs;
    this.paces = {
      soon: { firstMs: FIRST_SOON_MS, gapMs: SOON_GAP_MS, longestMs: Math.max(2 * FIRST_SOON_MS, longestMs) },
      later: { firstMs: minIntervalMs, gapMs: minIntervalMs / RETURNS_PER_INTERVAL, longestMs },
    };
  }

  /** The delay in milliseconds: from one second or one minimum interval to eight minimum intervals. */
  next({ of, retry }: Refusal): number {
    const { firstMs, gapMs, longestMs } = this.paces[retry];
    const line = `${retry} ${of}`;
    const now = this.now();
    const at = Math.max(now + firstMs, (this.last.get(line) ?? 0) + gapMs);
    if (at - now > longestMs) return longestMs * (1 - Math.random() / 2);
    this.last.set(line, at);
    return at - now;
  }
}
