import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';

const WARN_INTERVAL_MS = 60_000;

/**
 * Counts events per key in a time window. If the shared store fails, it counts in this process's memory. Waits are in
 * whole seconds; 0 means no wait.
 */
export class Limiter {
  private readonly logger = new Logger('limits');
  private warnedAt = 0;

  constructor(
    private readonly shared: RateLimiterAbstract,
    private readonly fallback: RateLimiterAbstract,
    private readonly limit: number,
  ) {}

  /** Counts one event. Returns the wait if it exceeds the limit. */
  async count(key: string): Promise<number> {
    const result = await this.withFallback((counter) => counter.penalty(digestOf(key)));
    return result.consumedPoints > this.limit ? secondsUntilReset(result) : 0;
  }

  /** Returns the wait if the limit is already reached. Counts nothing. */
  async currentWait(key: string): Promise<number> {
    const result = await this.withFallback((counter) => counter.get(digestOf(key)));
    return result && result.consumedPoints >= this.limit ? secondsUntilReset(result) : 0;
  }

  private async withFallback<T>(use: (counter: RateLimiterAbstract) => Promise<T>): Promise<T> {
    try {
      return await use(this.shared);
    } catch (error) {
      this.warn(error);
      return use(this.fallback);
    }
  }

  private warn(error: unknown): void {
    if (Date.now() - this.warnedAt < WARN_INTERVAL_MS) return;
    this.warnedAt = Date.now();
    const reason = error instanceof Error ? error.message : String(error);
    this.logger.warn(`the shared rate limit store failed (${reason}); this process counts in its own memory`);
  }
}

const secondsUntilReset = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

/** Keys contain untrusted input of any length, which may even be a secret, so only a digest is stored. */
const digestOf = (key: string): string => createHash('sha256').update(key).digest('base64url').slice(0, 22);
