import { LRUCache } from 'lru-cache';

/** No notification is put off for longer, in minimum intervals. */
export const LONGEST_PUT_OFF = 8;
/** So many of one host come back in a minimum interval: each costs the queue two moves, and that is others' time. */
const PER_INTERVAL = 750;
const MOST_HOSTS = 1_000;

/** When what is turned away from a slow host comes back: one after the other, not as the herd that they are. */
export class PutOffs {
  /** When the last one of a host comes back. */
  private readonly last = new LRUCache<string, number>({ max: MOST_HOSTS });

  constructor(
    private readonly minIntervalMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** In milliseconds: at least a minimum interval, at most eight. */
  next(host: string): number {
    const now = this.now();
    const longest = LONGEST_PUT_OFF * this.minIntervalMs;
    const at = Math.max(now + this.minIntervalMs, (this.last.get(host) ?? 0) + this.minIntervalMs / PER_INTERVAL);
    if (at - now > longest) return longest * (1 - Math.random() / 2);
    this.last.set(host, at);
    return at - now;
  }
}
