import type { DataSource } from 'typeorm';
import { Client, ClientSecret } from '../../../clients/client.entity.js';
import { type Dialect, dialectOf, tableOf } from '../../../database/data-source.js';
import type { ResolvedOptions } from '../../../usher.options.js';
import { type Row, runStatement } from '../../../database/statements/statement.js';
import { AccessToken, EXPIRY_MARGIN_MS, Grant } from '../grant.entity.js';

/** Whose request it is. `secret_id` is empty unless the client was remembered, and has to be checked. */
const REQUESTER = { client_id: 'text', generation: 'int', secret_id: 'text' } as const;
const GRANT = { id: 'text', refresh_digest: 'text', access_digest: 'text', ...REQUESTER } as const;
const PRESENTED = { position: 'int', refresh_digest: 'text', client_id: 'text', generation: 'int' } as const;
const REFRESHED = { digest: 'text', grant_id: 'text', ...REQUESTER } as const;

/** A grant whose refresh token was presented. */
interface PresentedGrant {
  id: string;
  /** The stored expiry is below a full lifetime. */
  isDue: boolean;
}

type RowOf<Columns> = { [Name in keyof Columns]: string | number };

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
    [this.grants, this.accessTokens, this.clients] = [Grant, AccessToken, Client].map((entity) =>
      tableOf(dataSource, entity),
    ) as [string, string, string];
    this.joinRequester = `
      LEFT JOIN ${tableOf(dataSource, ClientSecret)} s
        ON s.id = v.secret_id AND s.client_id = v.client_id AND (s.expires_at IS NULL OR s.expires_at > ${this.now})
      LEFT JOIN ${this.clients} c
        ON c.id = s.client_id AND c.token_generation = v.generation AND c.disabled_at IS NULL`;
    this.accessMs = accessTokenSeconds * 1_000;
    this.refreshMs = refreshTokenSeconds * 1_000;
  }

  /** Returns the ids of the grants that were inserted. The others' requesters are no longer valid. */
  async insertGrants(rows: RowOf<typeof GRANT>[]): Promise<Set<string>> {
    const list = this.dialect.rows(GRANT, rows);
    const { affected } = await runStatement(this.dataSource, {
      name: 'usher_insert_grants',
      text: `
        INSERT INTO ${this.grants} (id, client_id, refresh_digest, access_digest, generation, created_at, expires_at,
          access_expires_at)
        SELECT v.id, v.client_id, v.refresh_digest, v.access_digest, v.generation, ${this.now},
          ${this.now} + ${this.refreshMs + EXPIRY_MARGIN_MS}, ${this.now} + ${this.accessMs}
        FROM ${list.sql} ${this.joinRequester}
        WHERE v.secret_id = '' OR c.id IS NOT NULL`,
      parameters: list.parameters,
    });
    return this.inserted(this.grants, 'id', rows, affected);
  }

  /** The valid grants of these refresh tokens, in their order. */
  async findGrants(rows: Omit<RowOf<typeof PRESENTED>, 'position'>[]): Promise<(PresentedGrant | null)[]> {
    const list = this.dialect.rows(
      PRESENTED,
      rows.map((row, position) => ({ position, ...row })),
    );
    const { rows: found } = await runStatement(this.dataSource, {
      name: 'usher_find_grants',
      text: `
        SELECT v.position, g.id, g.expires_at - ${this.now} AS remaining_ms
        FROM ${list.sql}
        JOIN ${this.grants} g ON g.refresh_digest = v.refresh_digest AND g.client_id = v.client_id
          AND g.generation = v.generation AND g.expires_at > ${this.now}`,
      parameters: list.parameters,
    });
    const grants = new Array<PresentedGrant | null>(rows.length).fill(null);
    for (const { position, id, remaining_ms } of found)
      grants[Number(position)] = { id: String(id), isDue: Number(remaining_ms) < this.refreshMs };
    return grants;
  }

  /** Returns the digests that were inserted. Of the others, the grant was revoked or the requester is no longer valid. */
  async insertAccessTokens(rows: RowOf<typeof REFRESHED>[]): Promise<Set<string>> {
    const list = this.dialect.rows(REFRESHED, rows);
    // Locked, because a refresh concurrent with a revocation could otherwise leave a valid access token behind.
    const lock = this.dialect.lock('g', 'change');
    const { affected } = await runStatement(this.dataSource, {
      name: 'usher_insert_access_tokens',
      text: `
        INSERT INTO ${this.accessTokens} (digest, grant_id, client_id, owner_id, generation, created_at, expires_at)
        SELECT v.digest, g.id, g.client_id, g.owner_id, g.generation, ${this.now}, ${this.now} + ${this.accessMs}
        FROM ${list.sql} JOIN ${this.grants} g ON g.id = v.grant_id ${this.joinRequester}
        WHERE v.secret_id = '' OR c.id IS NOT NULL ${lock}`,
      parameters: list.parameters,
    });
    return this.inserted(this.accessTokens, 'digest', rows, affected);
  }

  /** Promises a full lifetime again. In the order of the ids, so that two of these statements do not deadlock. */
  async extendGrants(ids: string[]): Promise<void> {
    const list = this.dialect.rows(
      { id: 'text' },
      ids.toSorted().map((id) => ({ id })),
    );
    const changes = { expires_at: `${this.now} + ${this.refreshMs + EXPIRY_MARGIN_MS}` };
    const isDue = `AND t.expires_at < ${this.now} + ${this.refreshMs}`;
    await runStatement(this.dataSource, {
      name: 'usher_extend_grants',
      text: this.dialect.update(this.grants, list.sql, changes, isDue),
      parameters: list.parameters,
    });
  }

  /** The valid access tokens of these digests, each with the columns of its client. */
  async findAccessTokens(digests: string[]): Promise<Row[]> {
    const list = this.dialect.rows(
      { digest: 'text' },
      digests.map((digest) => ({ digest })),
    );
    const { rows } = await runStatement(this.dataSource, {
      name: 'usher_find_access_tokens',
      text: `
        SELECT c.*, t.digest AS token_digest, t.grant_id AS token_grant, t.owner_id AS token_owner, t.created_at AS token_created_at,
          t.expires_at AS token_expires_at, t.expires_at - ${this.now} AS remaining_ms
        FROM (
          SELECT g.access_digest AS digest, g.id AS grant_id, g.client_id, g.owner_id, g.generation, g.created_at,
            g.access_expires_at AS expires_at
          FROM ${list.sql} JOIN ${this.grants} g ON g.access_digest = v.digest
          UNION ALL
          SELECT a.digest, a.grant_id, a.client_id, a.owner_id, a.generation, a.created_at, a.expires_at
          FROM ${list.sql} JOIN ${this.accessTokens} a ON a.digest = v.digest
        ) t
        JOIN ${this.clients} c ON c.id = t.client_id AND c.token_generation = t.generation AND c.disabled_at IS NULL
        WHERE t.expires_at > ${this.now}`,
      parameters: this.dialect.twice(list.parameters),
    });
    return rows;
  }

  private async inserted(table: string, key: string, rows: Row[], affected: number): Promise<Set<string>> {
    const keys = rows.map((row) => String(row[key]));
    if (affected === rows.length) return new Set(keys);
    const list = this.dialect.rows(
      { key_of_row: 'text' },
      keys.map((value) => ({ key_of_row: value })),
    );
    const text = `SELECT t.${key} AS key_of_row FROM ${list.sql} JOIN ${table} t ON t.${key} = v.key_of_row`;
    const { rows: found } = await runStatement(this.dataSource, { text, parameters: list.parameters });
    return new Set(found.map(({ key_of_row }) => String(key_of_row)));
  }
}
