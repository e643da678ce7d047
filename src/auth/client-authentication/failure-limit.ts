import { Inject, Injectable } from '@nestjs/common';
import { addressGroup } from '../../http/client-address.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Limiter } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** The limit of one address over all client ids, as a multiple of the limit for one client id. */
const ADDRESS_LIMIT_FACTOR = 10;

/** The client id that a request claims, and the address it comes from. */
export interface Caller {
  clientId: string;
  address: string;
}

/**
 * Blocks secret guessing: per pair of client id and address, and per address over all client ids. Failures from one
 * address never block a client at another address.
 */
@Injectable()
export class FailureLimit {
  private readonly perClient: Limiter;
  private readonly perAddress: Limiter;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { authFailureLimit: { count, seconds } }: ResolvedOptions) {
    this.perClient = limits.limiter('failures', { count, seconds });
    this.perAddress = limits.limiter('failures-of-address', { count: count * ADDRESS_LIMIT_FACTOR, seconds });
  }

  /** Throws if this caller is blocked. */
  async check(caller: Caller): Promise<void> {
    const { pair, group } = keysOf(caller);
    throwIfBlocked(await Promise.all([this.perClient.currentWait(pair), this.perAddress.currentWait(group)]));
  }

  /** Throws if this failure exceeds the limit: concurrent requests all pass check() before the first failure counts. */
  async recordFailure(caller: Caller): Promise<void> {
    const { pair, group } = keysOf(caller);
    throwIfBlocked(await Promise.all([this.perClient.count(pair), this.perAddress.count(group)]));
  }
}

function keysOf({ clientId, address }: Caller): { pair: string; group: string } {
  const group = addressGroup(address);
  return { pair: `${group} ${clientId}`, group };
}

function throwIfBlocked(waits: number[]): void {
  const wait = Math.max(...waits);
  if (wait > 0)
    throw new OAuthError('slow_down', 'too many failed authentication attempts; try again later', 429, wait);
}
