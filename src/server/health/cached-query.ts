import { LRUCache } from 'lru-cache';
import { withTimeout } from '../../values/duration.js';

const MIN_CACHE_MS = 5_000;
/** A slow query is cached for this many times its duration, so it uses a connection at most 5 % of the time. */
const CACHE_FACTOR = 20;
/** How long a caller waits, and how long a page waits for a number that it can leave out. */
const TIMEOUT_MS = 2_000;
export const SHORT_TIMEOUT_MS = 200;
/** So that a page is answered before its query runs again. */
const REFRESH_AFTER_MS = 1_000;

/** A query whose result is cached for some seconds. It runs once at a time, and callers wait for it only a short time. */
export class CachedQuery<T> {
  private running: Promise<T> | null = null;
  private cached: { value: T; until: number } | null = null;

  /** For `staleMs` after that, a caller gets the last result, and the query runs a second later for the next caller. */
  constructor(
    private readonly query: () => Promise<T>,
    private readonly staleMs = 0,
    private readonly timeoutMs = TIMEOUT_MS,
  ) {}

  /** Null if there was no answer in time, or an error. */
  async get(): Promise<T | null> {
    const { cached } = this;
    const now = performance.now();
    if (cached && now < cached.until) return cached.value;
    const isStale = cached !== null && now < cached.until + this.staleMs;
    this.running ??= this.refresh(isStale ? REFRESH_AFTER_MS : 0);
    const running = this.running.catch(() => null);
    return isStale ? cached.value : withTimeout(running, this.timeoutMs).catch(() => null);
  }

  /** Forgets the result after a change, also that of a query which runs now. */
  async clear(): Promise<void> {
    await this.running?.catch(() => null);
    this.cached = null;
  }

  private async refresh(afterMs: number): Promise<T> {
    try {
      if (afterMs > 0) await new Promise((resolve) => setTimeout(resolve, afterMs).unref());
      const startedAt = performance.now();
      const value = await this.query();
      const now = performance.now();
      this.cached = { value, until: now + Math.max(MIN_CACHE_MS, CACHE_FACTOR * (now - startedAt)) };
      return value;
    } finally {
      this.running = null;
    }
  }
}

/** A page that is updated every 10 s shows what was counted for the update before. */
const STALE_MS = 30_000;

/** A cached query of a page for each of the last values that were asked for. */
export class CachedQueries<Of, T> {
  private readonly queries = new LRUCache<string, CachedQuery<T>>({ max: 100 });

  constructor(
    private readonly query: (value: Of) => Promise<T>,
    private readonly timeoutMs?: number,
  ) {}

  of(value: Of): CachedQuery<T> {
    const key = JSON.stringify(value);
    const query = this.queries.get(key) ?? new CachedQuery(() => this.query(value), STALE_MS, this.timeoutMs);
    this.queries.set(key, query);
    return query;
  }

  get(value: Of): Promise<T | null> {
    return this.of(value).get();
  }

  clear(): void {
    this.queries.clear();
  }
}

export type Answers<Queries> = {
  [Name in keyof Queries]: Queries[Name] extends CachedQuery<infer T> ? T | null : never;
};

export async function answersOf<Queries extends Record<string, CachedQuery<unknown>>>(
  queries: Queries,
): Promise<Answers<Queries>> {
  const answers = Object.entries(queries).map(async ([name, query]) => [name, await query.get()] as const);
  return Object.fromEntries(await Promise.all(answers)) as Answers<Queries>;
}
