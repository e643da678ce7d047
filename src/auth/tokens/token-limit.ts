import { Inject, Injectable } from '@nestjs/common';
import { OAuthError } from '../../http/oauth-error.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** Limits the token requests of each client. Issued and refreshed tokens count together. */
@Injectable()
export class TokenLimit {
  private readonly limiter: Limiter | null;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { tokenRateLimit }: ResolvedOptions) {
    this.limiter = tokenRateLimit && limits.limiter('tokens', tokenRateLimit);
  }

  /** Counts a request. Throws if it exceeds the limit. */
  count(clientId: string): void {
    const wait = this.limiter?.count(limitKey(clientId)) ?? 0;
    if (wait > 0)
      throw new OAuthError('slow_down', 'too many token requests; reuse the access token until it expires', 429, wait);
  }
}
