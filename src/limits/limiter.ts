import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';

const WARN_EVERY_MS = 60_000;

/**
 * Counts per key in a window of time; where the shared store fails, in this process's memory. A wait is in whole
 * seconds, and 0 where there is none.
 */
export class Limiter {
  private readonly logger = new Logger('limits');
  private warnedAt = 0;

  constructor(
    private readonly shared: RateLimiterAbstract,
    private readonly insurance: RateLimiterAbstract,
    private readonly limit: number,
  ) {}

  /** Counts one; the wait where that is one too many. */
  async count(key: string): Promise<number> {
    const result = await this.insured((counter) => counter.penalty(digestOf(key)));
    return result.consumedPoints > this.limit ? waitOf(result) : 0;
  }

  /** The wait where the limit is used up already; counts nothing. */
  async wait(key: string): Promise<number> {
    const result = await this.insured((counter) => counter.get(digestOf(key)));
    return result && result.consumedPoints >= this.limit ? waitOf(result) : 0;
  }

  private async insured<T>(use: (counter: RateLimiterAbstract) => Promise<T>): Promise<T> {
    try {
      return await use(this.shared);
    } catch (error) {
      this.warn(error);
      return use(this.insurance);
    }
  }

  private warn(error: unknown): void {
    if (Date.now() - this.warnedAt < WARN_EVERY_MS) return;
    this.warnedAt = Date.now();
    const reason = error instanceof Error ? error.message : String(error);
    this.logger.warn(`the shared store of the rate limits fails (${reason}); this process counts alone`);
  }
}

const waitOf = ({ msBeforeNext }: RateLimiterRes): number => Math.max(1, Math.ceil(msBeforeNext / 1_000));

/** Keys are made of what strangers send: of any length, with any character, now and then a secret. */
const digestOf = (key: string): string => createHash('sha256').update(key).digest('base64url').slice(0, 22);
