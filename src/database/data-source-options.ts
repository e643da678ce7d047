import { connect, Socket } from 'node:net';
import { createConnection } from 'mysql2/promise';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { ResolvedOptions } from '../usher.options.js';
import { socketHost } from '../values/connection-url.js';
import type { RetryPolicy } from '../values/retry-schedule.js';
import { StartUpError, unreachable } from '../values/start-up-error.js';
import type { EmbeddedPostgres } from './embedded/index.js';
import { Initial1767225600000 } from './migrations/1767225600000-initial.js';
import { isDatabaseDown } from './sql.js';

const CONNECT_TIMEOUT_MS = 5_000;

const COMMON = {
  migrations: [Initial1767225600000],
  migrationsTableName: 'usher_migration',
  migrationsTransactionMode: 'each' as const,
  logging: false,
} satisfies Partial<DataSourceOptions>;

/** The service gives up a connection that went silent; a migration may take its time. */
export type DatabaseTask = 'service' | 'migration';

/** What TypeORM needs for the configured database; `embedded` is the opened one where that is an embedded one. */
export async function dataSourceOptions(
  config: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  task: DatabaseTask,
): Promise<DataSourceOptions> {
  const { database, databasePool } = config;
  const limitMs = task === 'service' ? silenceLimit(config.retry) : 0;
  if (database.kind === 'embedded') {
    return { ...COMMON, type: 'postgres', extra: { ...embedded?.connection, max: databasePool } };
  }
  if (database.kind === 'postgres') {
    const extra = {
      connectionString: database.url.href,
      max: databasePool,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      stream: pgSocket(limitMs),
    };
    return { ...COMMON, type: 'postgres', extra };
  }
  return {
    ...COMMON,
    type: await mysqlDialect(database.url),
    ...mysqlConnection(database.url),
    connectTimeout: CONNECT_TIMEOUT_MS,
    extra: { connectionLimit: databasePool, enableKeepAlive: true, stream: mysqlSocket(limitMs) },
  };
}

/** An initialised data source; a StartUpError where the server does not let us in. */
export async function openDataSource(options: DataSourceOptions, { database }: ResolvedOptions): Promise<DataSource> {
  try {
    return await new DataSource(options).initialize();
  } catch (error) {
    const isServers = isDatabaseDown(error) || typeof (error as { code?: unknown }).code === 'string';
    throw isServers && database.kind !== 'embedded' ? unreachable('DATABASE_URL', database.url, error) : error;
  }
}

function mysqlConnection(url: URL) {
  return {
    host: socketHost(url),
    port: Number(url.port || 3306),
    ...(url.username && { username: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    database: decodeURIComponent(url.pathname.slice(1)),
    charset: 'utf8mb4_bin',
    timezone: 'Z',
    supportBigNumbers: true,
    ...mysqlTls(url),
  };
}

/** TypeORM compares schemas rightly only when told which of the two it talks to. */
async function mysqlDialect(url: URL): Promise<'mysql' | 'mariadb'> {
  const { username: user, ...options } = { username: undefined, ...mysqlConnection(url) };
  try {
    const connection = await createConnection({
      ...options,
      ...(user && { user }),
      connectTimeout: CONNECT_TIMEOUT_MS,
    });
    const [rows] = await connection.query('SELECT VERSION() AS version');
    await connection.end();
    return checkedDialect((rows as { version: string }[])[0]?.version ?? '');
  } catch (error) {
    throw error instanceof StartUpError ? error : unreachable('DATABASE_URL', url, error);
  }
}

function checkedDialect(version: string): 'mysql' | 'mariadb' {
  const dialect = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
  const [major = 0, minor = 0] = version
    .replace(/^5\.5\.5-/, '')
    .split('.')
    .map(Number);
  const enough = dialect === 'mariadb' ? major > 10 || (major === 10 && minor >= 6) : major >= 8;
  if (!enough)
    throw new StartUpError(`DATABASE_URL: the server is ${version}; Usher needs MySQL 8 or MariaDB 10.6 (SKIP LOCKED)`);
  return dialect;
}

/** mysql2 by itself checks who signed a certificate, and not whose it is. Authorities beyond Node's: NODE_EXTRA_CA_CERTS. */
const TLS: Record<string, { ssl?: { verifyIdentity?: boolean; rejectUnauthorized: boolean } }> = {
  REQUIRED: { ssl: { rejectUnauthorized: false } },
  VERIFY_IDENTITY: { ssl: { rejectUnauthorized: true, verifyIdentity: true } },
};

/** By the `ssl-mode` of a mysql:// address; without one nothing is encrypted. */
export const mysqlTls = ({ searchParams }: URL) => TLS[searchParams.get('ssl-mode') ?? ''] ?? {};

const LEAST_MS = 10_000;

/**
 * After how long a database that says nothing counts as gone: its host died, or a firewall forgot the connection. Without
 * a limit of ours the kernel's applies, a quarter of an hour, and a batch of claims hangs that long.
 */
export const silenceLimit = ({ timeoutMs }: RetryPolicy): number => Math.max(LEAST_MS, 2 * timeoutMs);

/** A socket factory for pg, which connects it itself. */
export const pgSocket = (limitMs: number) => (): Socket => limited(new Socket(), limitMs);

/** A socket factory for mysql2. */
export const mysqlSocket =
  (limitMs: number) =>
  ({ config }: { config: { host: string; port: number } }): Socket =>
    limited(connect(config.port, config.host).setNoDelay(true), limitMs);

function limited(socket: Socket, limitMs: number): Socket {
  const silent = (): Socket =>
    socket.destroy(Object.assign(new Error(`no answer for ${limitMs} ms`), { code: 'ETIMEDOUT' }));
  return socket.setTimeout(limitMs, silent);
}
