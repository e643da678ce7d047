import { Inject, Injectable } from '@nestjs/common';
import { PendingLimit } from '../webhooks/pending-limit.js';
import { type Problem, tooManyRequests } from '../http/problem.js';
import { type Limiter, limitKey } from '../limits/limiter.js';
import { Limits } from '../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';

/** Limits the orders that a client creates over REST: their rate, and while too many of its webhooks are pending. */
@Injectable()
export class OrderLimit {
  private readonly limiter: Limiter | null;

  constructor(
    limits: Limits,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) { orderRateLimit }: ResolvedOptions,
  ) {
    this.limiter = orderRateLimit && limits.limiter('orders', orderRateLimit);
  }

  /** Counts a request. Throws 429 with Retry-After if it exceeds a limit. */
  async count(clientId: string): Promise<void> {
    const wait = this.limiter?.count(limitKey(clientId)) ?? 0;
    if (wait > 0) throw tooManyOrders(wait);
    await this.pending.check(clientId);
  }
}

export const tooManyOrders = (waitSeconds: number): Problem =>
  tooManyRequests('too many new orders; create them more slowly', waitSeconds);
