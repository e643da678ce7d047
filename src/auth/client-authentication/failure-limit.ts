import { Inject, Injectable } from '@nestjs/common';
import { addressGroup } from '../../http/client-address.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Limiter } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** An address may fail so many times as often with all the client ids it tries as with one. */
const WIDER = 10;

/** Who tries to come in as whom. */
export interface Attempt {
  clientId: string;
  address: string;
}

/**
 * Shuts out who guesses secrets: one client id from one address, and an address that tries many ids. A client is never
 * shut out by what happens at other addresses.
 */
@Injectable()
export class FailureLimit {
  private readonly perClient: Limiter;
  private readonly perAddress: Limiter;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { authFailureLimit: { count, seconds } }: ResolvedOptions) {
    this.perClient = limits.limiter('failures', { count, seconds });
    this.perAddress = limits.limiter('failures-of-address', { count: count * WIDER, seconds });
  }

  /** Throws where this one is shut out. */
  async check(attempt: Attempt): Promise<void> {
    const { pair, group } = keysOf(attempt);
    refuse(await Promise.all([this.perClient.wait(pair), this.perAddress.wait(group)]));
  }

  /** Notes a failure; throws where it was one too many, as those of a burst are that were checked before any was noted. */
  async note(attempt: Attempt): Promise<void> {
    const { pair, group } = keysOf(attempt);
    refuse(await Promise.all([this.perClient.count(pair), this.perAddress.count(group)]));
  }
}

function keysOf({ clientId, address }: Attempt): { pair: string; group: string } {
  const group = addressGroup(address);
  return { pair: `${group} ${clientId}`, group };
}

function refuse(waits: number[]): void {
  const wait = Math.max(...waits);
  if (wait > 0) throw new OAuthError('slow_down', 'too many failed authentications; try again later', 429, wait);
}
