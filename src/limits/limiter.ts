import { hash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { RepeatedWarnings } from '../queue/repeated-warnings.js';
import { isFromReplica } from '../queue/redis-failover.js';
import type { Rate } from '../values/duration.js';

/** How often a process exchanges its counts with the shared store. */
const SHARE_INTERVAL_MS = 500;
/** After a failure of the shared store, this process does not use it for this long. */
const AWAY_MS = 5_000;
/** Only the keys used last are kept, so that invented keys cannot fill the memory. */
const MAX_KEYS = 50_000;

declare const isLimitKey: unique symbol;
/** The digest of what is limited, see {@link limitKey}. */
export type LimitKey = string & { [isLimitKey]: true };

/** Names contain untrusted input of any length, which may even be a secret, so only a digest is stored. */
export const limitKey = (name: string): LimitKey => hash('sha256', name, 'base64url').slice(0, 22) as LimitKey;

export interface SharedCount {
  consumedPoints: number;
  msBeforeNext: number;
}

/** Counts for all processes; rate-limiter-flexible implements it on Redis and on Postgres. */
export interface SharedCounter {
  penalty(key: string, points: number): Promise<SharedCount>;
  get(key: string): Promise<SharedCount | null>;
}

export interface Clock {
  now(): number;
  after(ms: number, task: () => void): void;
}

export const MONOTONIC: Clock = {
  now: () => performance.now(),
  after: (ms, task) => void setTimeout(task, ms).unref(),
};

/** For all limiters of this process, because they share one store. */
const limitWarnings = new RepeatedWarnings(new Logger('Usher limits'));

/** The time window of one key. It begins with the first event. */
interface Window {
  count: number;
  /** The part of `count` that the shared store does not have yet. */
  unshared: number;
  endsAt: number;
  sharedAt: number;
  /** The exchange with the shared store in progress. */
  sharing: Promise<void> | null;
}

/**
 * Counts events per key in a time window. Events count at once in this process, and within about a second in the others;
 * while the shared store fails, and up to 5 s longer, each process counts alone. So n processes together allow at most n times the limit.
 * Events that the store counted, but answered too late, count twice: a limit may be reached early, not late.
 * Waits are in whole seconds; 0 means no wait.
 */
export class Limiter {
  /** `max` would allocate all entries now, in each limiter; a sum of sizes does not. */
  private readonly windows = new LRUCache<LimitKey, Window>({ maxSize: MAX_KEYS, sizeCalculation: () => 1 });
  private readonly due = new Set<LimitKey>();
  private isScheduled = false;
  private awayUntil = -Infinity;

  constructor(
    private readonly rate: Rate,
    private shared: SharedCounter | null,
    private readonly clock: Clock = MONOTONIC,
  ) {}

  /** Counts one event. Returns the wait if it exceeds the limit. */
  count(key: LimitKey): number {
    const window = this.windowOf(key);
    if (window.count === 0) window.endsAt = this.clock.now() + this.rate.seconds * 1_000;
    window.count += 1;
    window.unshared += 1;
    this.shareSoon(key);
    return window.count > this.rate.count ? this.secondsLeft(window) : 0;
  }

  /** How many events are left until the limit, and the wait if there are none. Counts nothing. */
  read(key: LimitKey): { left: number; wait: number } {
    const window = this.windowOf(key);
    const left = Math.max(0, this.rate.count - window.count);
    return { left, wait: left > 0 ? 0 : this.secondsLeft(window) };
  }

  /** Resolves once this process has read the shared count within the last {@link SHARE_INTERVAL_MS}, if it can. */
  async refresh(key: LimitKey): Promise<void> {
    const now = this.clock.now();
    if (!this.shared || now < this.awayUntil) return;
    if (now - this.windowOf(key).sharedAt >= SHARE_INTERVAL_MS) await this.share(key);
  }

  /** Ends the exchange with the shared store. */
  close(): void {
    this.shared = null;
  }

  private windowOf(key: LimitKey): Window {
    const known = this.windows.get(key);
    if (known && (known.count === 0 || this.clock.now() < known.endsAt)) return known;
    const window: Window = { count: 0, unshared: 0, endsAt: 0, sharedAt: known?.sharedAt ?? -Infinity, sharing: null };
    this.windows.set(key, window);
    return window;
  }

  private secondsLeft({ endsAt }: Window): number {
    return Math.max(1, Math.ceil((endsAt - this.clock.now()) / 1_000));
  }

  private shareSoon(key: LimitKey): void {
    if (!this.shared) return;
    this.due.add(key);
    if (this.isScheduled) return;
    this.isScheduled = true;
    const delayMs = Math.max(SHARE_INTERVAL_MS, this.awayUntil - this.clock.now());
    this.clock.after(delayMs, () => void this.shareAll());
  }

  private async shareAll(): Promise<void> {
    const keys = [...this.due];
    this.due.clear();
    await Promise.all(keys.map((key) => this.share(key)));
    this.isScheduled = false;
    for (const key of this.due) this.shareSoon(key);
  }

  /** One exchange of a key at a time. Never rejects. */
  private async share(key: LimitKey): Promise<void> {
    const window = this.windows.peek(key);
    if (!window || !this.shared) return;
    window.sharing ??= this.exchange(key, window, this.shared).finally(() => (window.sharing = null));
    await window.sharing;
    // Events were counted during the exchange, or the exchange failed.
    if (window.unshared > 0) this.shareSoon(key);
  }

  /** Adds this process's events to the shared count, and takes over the total. */
  private async exchange(key: LimitKey, window: Window, shared: SharedCounter): Promise<void> {
    const sent = window.unshared;
    window.unshared = 0;
    try {
      const total = await (sent > 0 ? shared.penalty(key, sent) : shared.get(key));
      if (total) this.takeOver(window, total);
    } catch (error) {
      window.unshared += sent;
      this.awayUntil = this.clock.now() + AWAY_MS;
      this.warn(error);
    } finally {
      window.sharedAt = this.clock.now();
    }
  }

  /** A smaller total means that the store lost its data; then this process's own window stays. */
  private takeOver(window: Window, { consumedPoints, msBeforeNext }: SharedCount): void {
    const count = consumedPoints + window.unshared;
    if (count < window.count || msBeforeNext <= 0) return;
    window.count = count;
    window.endsAt = this.clock.now() + msBeforeNext;
  }

  private warn(error: unknown): void {
    if (!this.shared || isFromReplica(error)) return;
    const reason = error instanceof Error ? error.message : String(error);
    limitWarnings.warn(
      `the shared rate limit store failed (${reason}); this process counts alone until it works again`,
    );
  }
}
