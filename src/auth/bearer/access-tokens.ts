import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type DataSource, Repository } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { nowExpression } from '../../database/sql.js';
import { AccessToken } from '../tokens/grant.entity.js';
import { digestToken, parseToken } from '../tokens/token.js';

interface CachedToken {
  client: Client;
  grantId: string;
}

interface FoundToken extends CachedToken {
  /** Time until the token expires. */
  remainingMs: number;
}

/** Revoking a token or disabling a client must take effect in every process within 5 s, so this is shorter. */
const CACHE_TTL_MS = 4_000;
const MAX_ENTRIES = 10_000;

/** Finds the client of an access token. Valid tokens are cached briefly; invalid tokens are never cached. */
@Injectable()
export class AccessTokens {
  /** Keyed by digest, because tokens must not stay in memory. */
  private readonly cache = new LRUCache<string, CachedToken>({ max: MAX_ENTRIES, ttl: CACHE_TTL_MS, ttlResolution: 0 });
  private forgetCount = 0;

  private readonly clients: Repository<Client>;

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource) {
    this.clients = dataSource.getRepository(Client);
  }

  /** Null if the token is unknown, expired or revoked, or if its client is disabled. */
  async clientOf(token: string): Promise<Client | null> {
    if (parseToken(token)?.kind !== 'access') return null;
    const digest = digestToken(token);
    return (this.cache.get(digest) ?? (await this.lookUp(digest)))?.client ?? null;
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
    const now = nowExpression(this.clients.manager.dataSource);
    const { entities, raw } = await this.clients
      .createQueryBuilder('client')
      .innerJoin(AccessToken, 'token', 'token.clientId = client.id')
      .addSelect('token.grantId', 'grant_of_token')
      .addSelect(`token.expiresAt - ${now}`, 'remaining_ms')
      .where('token.digest = :digest', { digest })
      .andWhere(`token.expiresAt > ${now}`)
      .andWhere('client.disabledAt IS NULL')
      .getRawAndEntities<{ grant_of_token: string; remaining_ms: string | number }>();
    const [client] = entities;
    const [row] = raw;
    if (!client || !row) return null;
    return { client: Object.freeze(client), grantId: row.grant_of_token, remainingMs: Number(row.remaining_ms) };
  }
}
