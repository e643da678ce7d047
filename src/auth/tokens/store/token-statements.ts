import type { DataSource } from 'typeorm';
import { Client, ClientSecret, LEAKED } from '../../../clients/client.entity.js';
import type { Requester } from '../../../clients/secrets/client-secrets.js';
import { type Dialect, dialectOf, tableOf } from '../../../database/data-source.js';
import type { ResolvedOptions } from '../../../usher.options.js';
import { type Parameter, type Row, runSql, runStatement } from '../../../database/statements/statement.js';
import { AccessToken, EXPIRY_MARGIN_MS, Grant } from '../grant.entity.js';

type Columns<Name extends string> = Record<Name, 'text' | 'int'>;

/** The client of the request. `rememberedSecret` is empty if the client was authenticated just now. */
const REQUESTER = { clientId: 'text', generation: 'int', rememberedSecret: 'text' } as const;
const GRANT = { id: 'text', refreshDigest: 'text', accessDigest: 'text', ...REQUESTER } as const;
const PRESENTED = { position: 'int', refreshDigest: 'text', clientId: 'text', generation: 'int' } as const;
const REFRESHED = { accessDigest: 'text', grantId: 'text', ...REQUESTER } as const;

/** A grant with its first access token. The database adds the times. */
export interface NewGrant extends Requester {
  id: string;
  refreshDigest: string;
  accessDigest: string;
}

export interface Refresh extends Requester {
  /** Of the refresh token that was presented. */
  refreshDigest: string;
  /** Of the new access token. */
  accessDigest: string;
}

/** A grant whose refresh token was presented. */
export interface PresentedGrant {
  id: string;
  /** The stored expiry is below a full lifetime. */
  isDue: boolean;
}

/** The SQL of the busiest requests, on MySQL, MariaDB and Postgres. Each statement takes any number of rows. */
export class TokenStatements {
  private readonly now: string;
  private readonly grants: string;
  private readonly accessTokens: string;
  private readonly clients: string;
  private readonly dialect: Dialect;
  /** Joins the client of a row of `v`, if it and its secret are valid; `c.id` is null if they are not. */
  private readonly joinRequester: string;
  private readonly accessMs: number;
  private readonly refreshMs: number;

  constructor(
    private readonly dataSource: DataSource,
    { accessTokenSeconds, refreshTokenSeconds }: ResolvedOptions,
  ) {
    this.dialect = dialectOf(dataSource);
    this.now = this.dialect.now;
    this.grants = tableOf(dataSource, Grant);
    this.accessTokens = tableOf(dataSource, AccessToken);
    this.clients = tableOf(dataSource, Client);
    this.joinRequester = `
      LEFT JOIN ${tableOf(dataSource, ClientSecret)} s
        ON s.id = v.rememberedSecret AND s.client_id = v.clientId AND s.digest <> '${LEAKED}'
          AND (s.expires_at IS NULL OR s.expires_at > ${this.now})
      LEFT JOIN ${this.clients} c
        ON c.id = s.client_id AND c.token_generation = v.generation AND c.disabled_at IS NULL`;
    this.accessMs = accessTokenSeconds * 1_000;
    this.refreshMs = refreshTokenSeconds * 1_000;
  }

  /** Returns the ids of the grants that were inserted. The others' requesters are no longer valid. */
  async insertGrants(grants: NewGrant[]): Promise<Set<string>> {
    const { affected } = await this.run(
      'usher_insert_grants',
      GRANT,
      grants.map(withSecret),
      (list) => `
        INSERT INTO ${this.grants} (id, client_id, refresh_digest, access_digest, generation, created_at, expires_at,
          access_expires_at)
        SELECT v.id, v.clientId, v.refreshDigest, v.accessDigest, v.generation, ${this.now},
          ${this.now} + ${this.refreshMs + EXPIRY_MARGIN_MS}, ${this.now} + ${this.accessMs}
        FROM ${list} ${this.joinRequester}
        WHERE v.rememberedSecret = '' OR c.id IS NOT NULL`,
    );
    const ids = grants.map(({ id }) => id);
    return this.inserted(this.grants, 'id', ids, affected);
  }

  /** The valid grants of these refresh tokens, in their order. */
  async findGrants(refreshes: Refresh[]): Promise<(PresentedGrant | null)[]> {
    const { rows } = await this.run(
      'usher_find_grants',
      PRESENTED,
      refreshes.map((refresh, position) => ({ position, ...refresh })),
      (list) => `
        SELECT v.position, g.id, g.expires_at - ${this.now} AS remaining_ms
        FROM ${list}
        JOIN ${this.grants} g ON g.refresh_digest = v.refreshDigest AND g.client_id = v.clientId
          AND g.generation = v.generation AND g.expires_at > ${this.now}`,
    );
    const grants = new Array<PresentedGrant | null>(refreshes.length).fill(null);
    for (const { position, id, remaining_ms } of rows)
      grants[Number(position)] = { id: String(id), isDue: Number(remaining_ms) < this.refreshMs };
    return grants;
  }

  /** Returns the digests that were inserted. Of the others, the grant was revoked or the requester is no longer valid. */
  async insertAccessTokens(added: (Refresh & { grantId: string })[]): Promise<Set<string>> {
    // Locked, because a refresh concurrent with a revocation could otherwise leave a valid access token behind.
    const lock = this.dialect.lock('g', 'change');
    const { affected } = await this.run(
      'usher_insert_access_tokens',
      REFRESHED,
      added.map(withSecret),
      (list) => `
        INSERT INTO ${this.accessTokens} (digest, grant_id, client_id, owner_id, generation, created_at, expires_at)
        SELECT v.accessDigest, g.id, g.client_id, g.owner_id, g.generation, ${this.now}, ${this.now} + ${this.accessMs}
        FROM ${list} JOIN ${this.grants} g ON g.id = v.grantId ${this.joinRequester}
        WHERE v.rememberedSecret = '' OR c.id IS NOT NULL ${lock}`,
    );
    const digests = added.map(({ accessDigest }) => accessDigest);
    return this.inserted(this.accessTokens, 'digest', digests, affected);
  }

  /** Sets a full lifetime again, in the order of the ids, so that two of these statements do not deadlock. */
  async extendGrants(ids: string[]): Promise<void> {
    const changes = { expires_at: `${this.now} + ${this.refreshMs + EXPIRY_MARGIN_MS}` };
    const isDue = `AND t.expires_at < ${this.now} + ${this.refreshMs}`;
    const rows = ids.toSorted().map((id) => ({ id }));
    await runSql(
      this.dataSource,
      (parameter) => this.dialect.update(parameter, this.grants, { id: 'text' }, rows, changes, isDue),
      'usher_extend_grants',
    );
  }

  /** The valid access tokens of these digests, each with the columns of its client. */
  async findAccessTokens(digests: string[]): Promise<Row[]> {
    const list = (parameter: Parameter) =>
      this.dialect.rows(
        parameter,
        { digest: 'text' },
        digests.map((digest) => ({ digest })),
      );
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT c.*, t.digest AS token_digest, t.grant_id AS token_grant, t.owner_id AS token_owner, t.created_at AS token_created_at,
          t.expires_at AS token_expires_at, t.expires_at - ${this.now} AS remaining_ms
        FROM (
          SELECT g.access_digest AS digest, g.id AS grant_id, g.client_id, g.owner_id, g.generation, g.created_at,
            g.access_expires_at AS expires_at
          FROM ${list(parameter)} JOIN ${this.grants} g ON g.access_digest = v.digest
          UNION ALL
          SELECT a.digest, a.grant_id, a.client_id, a.owner_id, a.generation, a.created_at, a.expires_at
          FROM ${list(parameter)} JOIN ${this.accessTokens} a ON a.digest = v.digest
        ) t
        JOIN ${this.clients} c ON c.id = t.client_id AND c.token_generation = t.generation AND c.disabled_at IS NULL
        WHERE t.expires_at > ${this.now}`,
      'usher_find_access_tokens',
    );
    return rows;
  }

  /** The keys whose rows were inserted. `column` is the primary key of the table. */
  private async inserted(table: string, column: string, keys: string[], affected: number): Promise<Set<string>> {
    if (affected === keys.length) return new Set(keys);
    const { rows } = await this.run(
      undefined,
      { key_of_row: 'text' },
      keys.map((key_of_row) => ({ key_of_row })),
      (list) => `SELECT t.${column} AS key_of_row FROM ${list} JOIN ${table} t ON t.${column} = v.key_of_row`,
    );
    return new Set(rows.map(({ key_of_row }) => String(key_of_row)));
  }

  /** Runs a statement over rows. Its SQL reads them from `list`, whose name is `v`. */
  private run<Name extends string>(
    name: string | undefined,
    columns: Columns<Name>,
    rows: Record<NoInfer<Name>, unknown>[],
    sql: (list: string) => string,
  ) {
    const write = (parameter: Parameter) => sql(this.dialect.rows(parameter, columns, rows));
    return runStatement(this.dataSource, { name, write });
  }
}

/** Not null but empty, so that MySQL knows the type of the column. */
const withSecret = <T extends Requester>(row: T) => ({ ...row, rememberedSecret: row.rememberedSecret ?? '' });
