import { Inject, Injectable } from '@nestjs/common';
import { addressGroup } from '../../http/client-address.js';
import { OAuthError } from '../../http/oauth-error.js';
import { type FailureLimit, TooManyFailures } from '../../limits/failure-limit.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Rate } from '../../values/duration.js';

/** The limit of one address over all client ids, as a multiple of the limit for one client id. */
const ADDRESS_LIMIT_FACTOR = 10;

export const addressLimit = ({ count, seconds }: Rate): Rate => ({ count: count * ADDRESS_LIMIT_FACTOR, seconds });

/** The client id that a request claims, and the address it comes from. */
export interface Caller {
  clientId: string;
  address: string;
}

/**
 * Blocks secret guessing. Per client id and address: once the limit is reached, no secret is checked. Per address over
 * all client ids: further failures are answered 429, but correct credentials still pass, so that one caller with
 * invented ids cannot lock out the clients behind the same address. Other addresses are never affected.
 */
@Injectable()
export class ClientFailures {
  private readonly perClient: FailureLimit;
  private readonly perAddress: Limiter;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { authFailureLimit }: ResolvedOptions) {
    this.perClient = limits.failureLimit('failures', authFailureLimit);
    this.perAddress = limits.limiter('failures-of-address', addressLimit(authFailureLimit));
  }

  /** Authenticates by `identify`, within both limits. */
  async limit(caller: Caller, identify: () => Promise<void>): Promise<void> {
    const group = addressGroup(caller.address);
    try {
      await this.perClient.run(`${group} ${caller.clientId}`, identify, isInvalidClient);
    } catch (error) {
      if (error instanceof TooManyFailures) throw slowDown(error.waitSeconds);
      // The same answer whether the client id exists or not.
      const wait = isInvalidClient(error) ? this.perAddress.count(limitKey(group)) : 0;
      throw wait > 0 ? slowDown(wait) : error;
    }
  }
}

export const isInvalidClient = (error: unknown): boolean =>
  error instanceof OAuthError && error.code === 'invalid_client';

const slowDown = (waitSeconds: number): OAuthError =>
  new OAuthError('slow_down', 'too many failed authentication attempts; try again later', 429, waitSeconds);
