import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClientChanged, ClientSecrets } from '../../../clients/secrets/client-secrets.js';
import { Batcher } from '../../../database/statements/batcher.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { DatabaseClock } from '../../../database/database-clock.js';
import { retryDeadlocks } from '../../../database/sql.js';
import { entityOf, type Row } from '../../../database/statements/statement.js';
import { Client } from '../../../clients/client.entity.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { type NewGrant, type PresentedGrant, type Refresh, TokenStatements } from './token-statements.js';

/** So many statements keep a database busy while this process prepares the next one. */
const MAX_RUNNING = 4;

/** A valid access token. Times in milliseconds since 1970, by the database's clock. */
export interface ValidToken {
  grantId: string;
  clientId: string;
  /** The resource owner who allowed it. Null: the client itself. */
  ownerId: string | null;
  createdAt: number;
  expiresAt: number;
  remainingMs: number;
  client: Client;
}

/** Writes and finds tokens. Requests of the same moment share statements, and each statement commits by itself. */
@Injectable()
export class TokenStore {
  private readonly statements: TokenStatements;
  private readonly grants = new Batcher((grants: NewGrant[]) => this.insertAll(grants), MAX_RUNNING);
  private readonly refreshes = new Batcher((refreshes: Refresh[]) => this.refreshAll(refreshes), MAX_RUNNING);
  /** Not a part of a refresh: a batch of refreshes that fails is repeated, so it must not have added access tokens. */
  private readonly extensions = new Batcher((grantIds: string[]) => this.extendAll(grantIds), MAX_RUNNING);
  private readonly lookUps = new Batcher((digests: string[]) => this.findAll(digests), MAX_RUNNING);

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) options: ResolvedOptions,
    private readonly clock: DatabaseClock,
    private readonly secrets: ClientSecrets,
  ) {
    this.statements = new TokenStatements(dataSource, options);
  }

  /** @throws ClientChanged if a remembered client or its secret is no longer valid */
  async issue(grant: NewGrant): Promise<void> {
    if (!(await this.grants.run(grant))) throw new ClientChanged();
  }

  /**
   * Adds an access token to the grant of a refresh token, whose expiry slides. Returns the grant's id; null if the refresh
   * token is unknown, expired or revoked, or another client's.
   * @throws ClientChanged in place of null if the client, and not the token, may be invalid
   */
  async refresh(refresh: Refresh): Promise<string | null> {
    const grant = await this.refreshes.run(refresh);
    if (grant === null && !(await this.secrets.isStillValid(refresh))) throw new ClientChanged();
    if (grant?.isDue) await this.extensions.run(grant.id);
    return grant && grant.id;
  }

  /** Null if the access token is unknown, expired or revoked, or if its client is disabled. */
  find(accessDigest: string): Promise<ValidToken | null> {
    return this.lookUps.run(accessDigest);
  }

  private async insertAll(grants: NewGrant[]): Promise<boolean[]> {
    const inserted = await retryDeadlocks(() => this.statements.insertGrants(grants));
    return grants.map(({ id }) => inserted.has(id));
  }

  private async refreshAll(refreshes: Refresh[]): Promise<(PresentedGrant | null)[]> {
    const grants = await this.statements.findGrants(refreshes);
    const added = refreshes.flatMap((refresh, index) => {
      const grant = grants[index];
      return grant ? [{ ...refresh, grantId: grant.id }] : [];
    });
    const inserted =
      added.length > 0 ? await retryDeadlocks(() => this.statements.insertAccessTokens(added)) : new Set<string>();
    return refreshes.map(({ accessDigest }, index) => (inserted.has(accessDigest) ? (grants[index] ?? null) : null));
  }

  private async extendAll(grantIds: string[]): Promise<boolean[]> {
    await retryDeadlocks(() => this.statements.extendGrants([...new Set(grantIds)]));
    return grantIds.map(() => true);
  }

  private async findAll(digests: string[]): Promise<(ValidToken | null)[]> {
    const rows = await this.statements.findAccessTokens([...new Set(digests)]);
    const found = new Map(rows.map((row) => [row.token_digest, this.validToken(row)]));
    for (const { expiresAt, remainingMs } of found.values()) this.clock.take(expiresAt - remainingMs);
    return digests.map((digest) => found.get(digest) ?? null);
  }

  private validToken(row: Row): ValidToken {
    return {
      grantId: String(row.token_grant),
      clientId: String(row.id),
      ownerId: row.token_owner as string | null,
      createdAt: Number(row.token_created_at),
      expiresAt: Number(row.token_expires_at),
      remainingMs: Number(row.remaining_ms),
      client: Object.freeze(entityOf(this.dataSource, Client, row)),
    };
  }
}
