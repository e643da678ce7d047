import { Socket } from 'node:net';
import type pg from 'pg';
import type { Pool, PoolClient, PoolConfig } from 'pg';
import type { DataSource } from 'typeorm';
import { PoolSockets } from '../database/pool-sockets.js';
import { isDatabaseDown } from '../database/errors.js';
import type { ResolvedOptions } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';

/** On Postgres, BullMQ keeps its tables in a separate schema. It is named after the queue prefix. */
export const postgresSchema = (queuePrefix: string): string => queuePrefix.replaceAll('-', '_');

/**
 * How pg reaches the queue where it is on Postgres; null where it is in the embedded database or on Redis, or is not used.
 * @internal
 */
export function postgresAddress({ queue, database }: ResolvedOptions): PoolConfig | null {
  if (queue.kind === 'postgres') return { connectionString: queue.url.href };
  if (queue.kind === 'redis' || queue.kind === 'none') return null;
  if (database.kind === 'postgres') return { connectionString: database.url.href };
  return database.kind === 'host' ? addressOf(database.dataSource) : null;
}

/** The address in the options of the application's own data source; of its primary where it has replicas. */
function addressOf({ options }: DataSource): PoolConfig {
  if (options.type !== 'postgres') throw new StartUpError('queue.url is missing; the data source is not on Postgres');
  const { url, host, port, username: user, password, database, ssl } = options.replication?.master ?? options;
  return { connectionString: url, host, port, user, password, database, ssl, ...options.extra };
}

/**
 * A pool that connects again when its server refuses to write, which an embedded database never does. Its queries reject with
 * what `thrown` makes of an error.
 */
export function renewedPool({ Pool }: typeof pg, options: PoolConfig, thrown: (error: unknown) => unknown): Pool {
  const sockets = new PoolSockets();
  const stream = options.stream ?? (() => sockets.keep(new Socket(), 0));
  const pool = surviveLostConnections(new Pool({ ...options, stream }));
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  const fail = (error: unknown): never => {
    sockets.renewAfter(error);
    throw thrown(error);
  };
  pool.query = ((...args: unknown[]): unknown => {
    const result = query(...args);
    return result instanceof Promise ? result.catch(fail) : result;
  }) as Pool['query'];
  return pool;
}

/**
 * Keeps the process alive when a connection of the pool is lost. An `error` event without a listener ends the process: the
 * pool emits it for an idle connection, and the connection itself while BullMQ holds it. The statement that ran rejects
 * in each case, and the pool connects again.
 */
export function surviveLostConnections(pool: Pool): Pool {
  pool.on('error', () => undefined);
  return pool.on('connect', (connection) => void connection.on('error', () => undefined));
}

/**
 * Reports every connection error as ECONNREFUSED, the only one after which BullMQ waits before it retries. After others
 * (a reset, a server that is starting) its worker would retry in a busy loop and stop checking for stalled jobs.
 */
export const asRefused = (error: unknown): unknown =>
  isDatabaseDown(error)
    ? Object.assign(new Error((error as Error).message, { cause: error }), { code: 'ECONNREFUSED' })
    : error;

/** BullMQ makes a sequence for each queue when it adds the first job. Without it nothing would be delivered. */
export async function checkMayCreate(client: PoolClient, schema: string): Promise<void> {
  const text = `SELECT quote_ident(current_user) AS name, has_schema_privilege($1, 'CREATE') AS may`;
  const { rows } = await client.query<{ name: string; may: boolean }>(text, [schema]);
  const refused = rows.find(({ may }) => !may);
  if (refused)
    throw new StartUpError(`the queue cannot add jobs; run GRANT CREATE ON SCHEMA "${schema}" TO ${refused.name}`);
}

/** Table of the rate limits' counters, in the queue's schema. BullMQ already has a table `rate_limit` there. */
export const LIMIT_TABLE = 'usher_rate_limit';

/** UNLOGGED is faster; after a database crash the counts of the last minutes may be lost. */
export async function createLimitTable(client: PoolClient, schema: string): Promise<void> {
  await client.query(
    `CREATE UNLOGGED TABLE IF NOT EXISTS "${schema}"."${LIMIT_TABLE}" (
       key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)`,
  );
}

export async function hasLimitTable(client: PoolClient, schema: string): Promise<boolean> {
  const path = `"${schema}"."${LIMIT_TABLE}"`;
  const { rows } = await client.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [path]);
  return rows[0]?.found === true;
}
