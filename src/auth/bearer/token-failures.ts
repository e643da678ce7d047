import { Inject, Injectable } from '@nestjs/common';
import { addressGroup } from '../../http/exchange.js';
import { type Problem, tooManyRequests } from '../../http/problem.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { addressLimit } from '../client-authentication/client-authentication.js';

/**
 * Limits invalid access tokens per address. Only further invalid ones are refused: a valid token always passes, so that
 * one caller cannot lock out the clients behind the same address.
 */
@Injectable()
export class TokenFailures {
  private readonly failures: Limiter;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { authFailureLimit }: ResolvedOptions) {
    this.failures = limits.limiter('failed-tokens', addressLimit(authFailureLimit));
  }

  /** Counts an invalid token. Throws if it exceeds the limit. */
  count(address: string): void {
    const wait = this.failures.count(limitKey(addressGroup(address)));
    if (wait > 0) throw tooManyInvalidTokens(wait);
  }
}

export const tooManyInvalidTokens = (waitSeconds: number): Problem =>
  tooManyRequests('too many invalid access tokens; try again later', waitSeconds);
