import { randomBytes } from 'node:crypto';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import pg from 'pg';
import { BACKEND, MYSQL_URL, POSTGRES_URL, REDIS_URL, type Settings } from './backend.js';

type Row = Record<string, unknown>;

/** An empty database of the test on the server of this backend, and statements to change it from outside. */
export class OwnDatabase {
  readonly name = `usher_own_${randomBytes(5).toString('hex')}`;
  private readonly server = BACKEND === 'mariadb' ? MYSQL_URL : POSTGRES_URL;

  static async create(): Promise<OwnDatabase> {
    const database = new OwnDatabase();
    await database.administer(`CREATE DATABASE ${database.name}`);
    return database;
  }

  get url(): string {
    return `${this.server}/${this.name}`;
  }

  get settings(): Settings {
    return {
      DATABASE_URL: this.url,
      ...(BACKEND === 'mariadb' && { QUEUE_URL: REDIS_URL, QUEUE_PREFIX: this.name.replaceAll('_', '-') }),
      USHER_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      OPS_USER: 'ops',
      OPS_PASSWORD: 'ops',
      WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
    };
  }

  /** The same URL for another user. */
  urlOf(user: string): string {
    return Object.assign(new URL(this.url), { username: user }).href;
  }

  query(statement: string): Promise<Row[]> {
    return BACKEND === 'mariadb' ? onMariadb(this.url, statement) : onPostgres(this.url, statement);
  }

  /** On the server, for example to create the database or a user. */
  administer(statement: string): Promise<Row[]> {
    return BACKEND === 'mariadb' ? onMariadb(MYSQL_URL, statement) : onPostgres(`${POSTGRES_URL}/postgres`, statement);
  }

  /** Holds a table so that others may read it but not write it. Returns what releases it. */
  lock(table: string): Promise<() => Promise<void>> {
    return BACKEND === 'mariadb'
      ? this.hold(`LOCK TABLES ${table} READ`)
      : this.hold('BEGIN', `LOCK TABLE ${table} IN SHARE MODE`);
  }

  /** Runs the statements on a connection that stays open. Returns what closes it. */
  async hold(...statements: string[]): Promise<() => Promise<void>> {
    if (BACKEND === 'mariadb') {
      const connection = await createConnection(this.url);
      for (const statement of statements) await connection.query(statement);
      return () => connection.end();
    }
    const client = new pg.Client(this.url);
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return () => client.end();
  }

  async isWaitingForLock(): Promise<boolean> {
    const rows = await this.administer(
      BACKEND === 'mariadb'
        ? `SELECT id FROM information_schema.processlist WHERE db = '${this.name}' AND state LIKE 'Waiting for%' AND info LIKE 'INSERT%'`
        : `SELECT pid FROM pg_stat_activity WHERE datname = '${this.name}' AND wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  }

  /** Closes every connection to the database. */
  async cutConnections(): Promise<void> {
    if (BACKEND === 'postgres') {
      await this.administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${this.name}'`);
      return;
    }
    const rows = await this.administer(`SELECT id FROM information_schema.processlist WHERE db = '${this.name}'`);
    for (const { id } of rows) await this.administer(`KILL ${Number(id)}`).catch(() => undefined);
  }

  async drop(): Promise<void> {
    await this.administer(`DROP DATABASE ${this.name}${BACKEND === 'postgres' ? ' WITH (FORCE)' : ''}`);
  }
}

async function onMariadb(url: string, statement: string): Promise<Row[]> {
  const connection = await createConnection(url);
  try {
    const [rows] = await connection.query<RowDataPacket[]>(statement);
    return rows;
  } finally {
    connection.destroy();
  }
}

async function onPostgres(url: string, statement: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}
