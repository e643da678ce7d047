import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { DataSource } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { entityOf } from '../../database/statements/statement.js';
import { digestToken, parseToken } from '../tokens/token.js';
import { TokenStore } from '../tokens/store/token.store.js';

/** Who an access token was issued to, and for whom. */
export interface TokenHolder {
  client: Client;
  /** The resource owner who allowed it. Null: the client acts for itself. */
  ownerId: string | null;
}

interface CachedToken extends TokenHolder {
  grantId: string;
}

interface FoundToken extends CachedToken {
  /** Time until the token expires. */
  remainingMs: number;
}

/** Revoking a token or disabling a client must take effect in every process within 5 s, so this is shorter. */
const CACHE_TTL_MS = 4_000;
const MAX_ENTRIES = 10_000;

/** Finds the client and the resource owner of an access token. Valid tokens are cached briefly; invalid tokens are never cached. */
@Injectable()
export class AccessTokens {
  /** Keyed by digest, because tokens must not stay in memory. */
  private readonly cache = new LRUCache<string, CachedToken>({ max: MAX_ENTRIES, ttl: CACHE_TTL_MS, ttlResolution: 0 });
  private forgetCount = 0;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly store: TokenStore,
  ) {}

  /** Null if the token is unknown, expired or revoked, or if its client is disabled. */
  async holderOf(token: string): Promise<TokenHolder | null> {
    if (parseToken(token)?.kind !== 'access') return null;
    const digest = digestToken(token);
    return this.cache.get(digest) ?? (await this.lookUp(digest));
  }

  /** Removes a token from this process's cache. Other processes stop accepting it within 5 s. */
  forget(token: string): void {
    this.forgetCount += 1;
    this.cache.delete(digestToken(token));
  }

  /** Removes every access token of a grant from this process's cache. */
  forgetGrant(grantId: string): void {
    this.forgetCount += 1;
    for (const [digest, cached] of [...this.cache.entries()]) if (cached.grantId === grantId) this.cache.delete(digest);
  }

  private async lookUp(digest: string): Promise<CachedToken | null> {
    const startedAt = performance.now();
    const forgetCountBefore = this.forgetCount;
    const found = await this.find(digest);
    if (!found) return null;
    // The cache time counts from the start of the query. A token is not cached if any token was forgotten meanwhile.
    const ttl = Math.min(CACHE_TTL_MS, found.remainingMs) - (performance.now() - startedAt);
    if (ttl >= 1 && this.forgetCount === forgetCountBefore) this.cache.set(digest, found, { ttl: Math.floor(ttl) });
    return found;
  }

  private async find(digest: string): Promise<FoundToken | null> {
    const token = await this.store.find(digest);
    if (!token) return null;
    const client = entityOf(this.dataSource, Client, token.client);
    const { ownerId, grantId, remainingMs } = token;
    return { client: Object.freeze(client), ownerId, grantId, remainingMs };
  }
}
