import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { addressGroup } from '../../http/exchange.js';
import { type Problem, tooManyRequests } from '../../http/problem.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { TokenStore, type ValidToken } from '../tokens/store/token.store.js';
import { digestToken, parseToken } from '../tokens/token.js';

/** Who an access token was issued to, and for whom. */
export type TokenHolder = Pick<ValidToken, 'client' | 'ownerId'>;

/** Revoking a token or disabling a client must take effect in every process within 5 s, so this is shorter. */
const CACHE_TTL_MS = 4_000;
const MAX_ENTRIES = 10_000;

/** Finds the client and the resource owner of an access token. Valid tokens are cached briefly; invalid tokens are never cached. */
@Injectable()
export class AccessTokens {
  /** Keyed by digest, because tokens must not stay in memory. */
  private readonly cache = new LRUCache<string, ValidToken>({ max: MAX_ENTRIES, ttl: CACHE_TTL_MS, ttlResolution: 0 });
  private forgetCount = 0;

  private readonly invalid: Limiter;

  constructor(
    private readonly store: TokenStore,
    limits: Limits,
  ) {
    this.invalid = limits.addressLimiter('failed-tokens');
  }

  /** Null if the token is unknown, expired or revoked, or if its client is disabled. */
  async holderOf(token: string): Promise<TokenHolder | null> {
    if (parseToken(token)?.kind !== 'access') return null;
    const digest = digestToken(token);
    return this.cache.get(digest) ?? (await this.lookUp(digest));
  }

  /**
   * Counts an invalid token of an address. Throws if it exceeds the limit. Only further invalid tokens are refused: a valid one
   * always passes, so that one caller cannot lock out the clients behind the same address.
   */
  countInvalid(address: string): void {
    const wait = this.invalid.count(limitKey(addressGroup(address)));
    if (wait > 0) throw tooManyInvalidTokens(wait);
  }

  /** Removes a token from this process's cache. Other processes stop accepting it within 5 s. */
  forget(token: string): void {
    this.forgetCount += 1;
    this.cache.delete(digestToken(token));
  }

  /** Removes every access token of these grants from this process's cache. */
  forgetGrants(grantIds: string[]): void {
    this.forgetCount += 1;
    const ids = new Set(grantIds);
    for (const [digest, { grantId }] of [...this.cache.entries()]) if (ids.has(grantId)) this.cache.delete(digest);
  }

  private async lookUp(digest: string): Promise<ValidToken | null> {
    const startedAt = performance.now();
    const forgetCountBefore = this.forgetCount;
    const found = await this.store.find(digest);
    if (!found) return null;
    // The cache time counts from the start of the query. A token is not cached if any token was forgotten meanwhile.
    const ttl = Math.min(CACHE_TTL_MS, found.remainingMs) - (performance.now() - startedAt);
    if (ttl >= 1 && this.forgetCount === forgetCountBefore) this.cache.set(digest, found, { ttl: Math.floor(ttl) });
    return found;
  }
}

export const tooManyInvalidTokens = (waitSeconds: number): Problem =>
  tooManyRequests('too many invalid access tokens; try again later', waitSeconds);
