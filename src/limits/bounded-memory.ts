import { RateLimiterMemory } from 'rate-limiter-flexible';

const MOST_KEYS = 50_000;

/** Counts in this process's memory, of the most recent keys alone: nobody can grow it by making keys up. */
export class BoundedMemory extends RateLimiterMemory {
  /** Oldest use first. */
  private readonly keys = new Set<string>();

  override penalty(key: string, points?: number): ReturnType<RateLimiterMemory['penalty']> {
    this.remember(key);
    return super.penalty(key, points);
  }

  private remember(key: string): void {
    this.keys.delete(key);
    this.keys.add(key);
    if (this.keys.size > MOST_KEYS) this.forgetOldest();
  }

  private forgetOldest(): void {
    const [oldest = ''] = this.keys;
    this.keys.delete(oldest);
    void this.delete(oldest);
  }
}
