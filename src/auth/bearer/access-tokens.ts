import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type DataSource, Repository } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { nowExpression } from '../../database/sql.js';
import { AccessToken } from '../tokens/grant.entity.js';
import { digestToken, parseToken } from '../tokens/token.js';

interface Good {
  client: Client;
  grantId: string;
}

interface Found extends Good {
  /** How long the token is good for yet. */
  remainingMs: number;
}

/** Below the 5 s within which revoking a token and disabling a client act in every process. */
const KEPT_MS = 4_000;
const KEPT_MOST = 10_000;

/** Which client an access token is good for. A good one is remembered for a moment; a bad one is looked up every time. */
@Injectable()
export class AccessTokens {
  /** By digest: the tokens themselves are not kept in memory either. */
  private readonly good = new LRUCache<string, Good>({ max: KEPT_MOST, ttl: KEPT_MS, ttlResolution: 0 });
  private forgets = 0;

  private readonly clients: Repository<Client>;

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource) {
    this.clients = dataSource.getRepository(Client);
  }

  /** Null: unknown, expired, revoked, or its client is disabled. */
  async clientOf(token: string): Promise<Client | null> {
    if (parseToken(token)?.kind !== 'access') return null;
    const digest = digestToken(token);
    return (this.good.get(digest) ?? (await this.lookUp(digest)))?.client ?? null;
  }

  /** At once in this process; the others follow within 5 s. */
  forget(token: string): void {
    this.forgets += 1;
    this.good.delete(digestToken(token));
  }

  /** The same for every access token of a grant. */
  forgetGrant(grantId: string): void {
    this.forgets += 1;
    for (const [digest, good] of [...this.good.entries()]) if (good.grantId === grantId) this.good.delete(digest);
  }

  private async lookUp(digest: string): Promise<Good | null> {
    const askedAt = performance.now();
    const forgetsThen = this.forgets;
    const found = await this.find(digest);
    if (!found) return null;
    // As of the question, not of the answer; and not at all where something was forgotten in between.
    const ttl = Math.min(KEPT_MS, found.remainingMs) - (performance.now() - askedAt);
    if (ttl >= 1 && this.forgets === forgetsThen) this.good.set(digest, found, { ttl: Math.floor(ttl) });
    return found;
  }

  private async find(digest: string): Promise<Found | null> {
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
