import { connect, Socket } from 'node:net';
import { coerce, lt } from 'semver';
import { DataSource, type DataSourceOptions, type EntityTarget } from 'typeorm';
import { MAX_TIMER_MS } from '../values/duration.js';
import type { ResolvedOptions } from '../usher.options.js';
import { socketHost } from '../values/urls/notify-url.js';
import { loadPackage, StartUpError, unreachable } from '../values/start-up-error.js';
import { loadPg, SILENT } from './data-source.js';
import { type EmbeddedPostgres, GUESTS_LIMIT_MS, openEmbeddedPostgres } from './embedded/index.js';
import { usherMigrations } from './migrator.js';
import { IDLE_TRANSACTION_MS, prepareSessions } from './sessions.js';
import { PoolSockets } from './pool-sockets.js';
import { isDatabaseDown } from './errors.js';

const CONNECT_TIMEOUT_MS = 5_000;

/** The service closes a connection that does not answer in time; a command or a migration may take as long as it needs. */
type DatabaseTask = 'service' | 'migration';

const isLimited = ({ role }: ResolvedOptions, task: DatabaseTask): boolean => task === 'service' && role !== null;

/** TypeORM's options for the configured database. `embedded` is the opened embedded database, or null. */
export async function dataSourceOptions(
  config: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  task: DatabaseTask,
  sockets = new PoolSockets(),
): Promise<DataSourceOptions> {
  const { database, databasePool, names } = config;
  const common = {
    migrations: usherMigrations,
    migrationsTableName: config.migrationTable,
    migrationsTransactionMode: 'each' as const,
    logger: SILENT,
  };
  const timeoutMs = isLimited(config, task) ? socketTimeoutMs(config) : 0;
  if (database.kind === 'embedded') {
    return { ...common, type: 'postgres', extra: { ...embedded?.connection, max: databasePool, pipeline: true } };
  }
  if (database.kind === 'host') return database.dataSource.options;
  if (database.kind === 'postgres') {
    const extra = {
      connectionString: database.url.href,
      max: databasePool,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      pipeline: true,
      keepAlive: true,
      stream: () => sockets.keep(new Socket(), timeoutMs),
    };
    return { ...common, type: 'postgres', extra };
  }
  const connection = mysqlConnection(database.url);
  return {
    ...common,
    type: await mysqlDialect(database.url, names.databaseUrl),
    database: connection.database,
    extra: {
      ...connection,
      connectionLimit: databasePool,
      multipleStatements: true,
      enableKeepAlive: true,
      stream: ({ config: { host, port } }: { config: { host: string; port: number } }) =>
        sockets.keep(connect(port, host).setNoDelay(true), timeoutMs),
    },
  };
}

/** Opens a data source. Throws a StartUpError if the server is unreachable or refuses the connection. */
export async function openDataSource(
  config: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  task: DatabaseTask,
  entities: EntityTarget<object>[],
): Promise<DataSource> {
  const { database, names } = config;
  const sockets = new PoolSockets();
  const options = { ...(await dataSourceOptions(config, embedded, task, sockets)), entities } as DataSourceOptions;
  // TypeORM loads the driver itself, but its error for a missing one does not name the command.
  if (options.type === 'postgres') await loadPg();
  let isOpen = false;
  try {
    const dataSource = await new DataSource(options).initialize();
    isOpen = true;
    dataSource.subscribers.push(sockets);
    // The embedded database has no such limits.
    const isServer = database.kind !== 'embedded';
    const statementMs = isServer && isLimited(config, task) ? config.databaseTimeoutMs : 0;
    await prepareSessions(dataSource, { statementMs, idleMs: isServer ? IDLE_TRANSACTION_MS : 0 });
    return dataSource;
  } catch (error) {
    if (error instanceof StartUpError || !('url' in database)) throw error;
    // If another kind of server answers, the driver's error has no code.
    const isServerError = !isOpen || isDatabaseDown(error) || typeof (error as { code?: unknown }).code === 'string';
    throw isServerError ? unreachable(names.databaseUrl, database.url, error) : error;
  }
}

/** Opens the database only for `work`, and closes it. It joins a process that already runs an embedded one. */
export async function withDataSource<T>(
  config: ResolvedOptions,
  task: DatabaseTask,
  entities: EntityTarget<object>[],
  work: (dataSource: DataSource, embedded: EmbeddedPostgres | null) => Promise<T>,
): Promise<T> {
  const { database } = config;
  const options = { guestsLimitMs: GUESTS_LIMIT_MS };
  const embedded = database.kind === 'embedded' ? await openEmbeddedPostgres(database.folder, 'join', options) : null;
  try {
    const dataSource = await openDataSource(config, embedded, task, entities);
    return await work(dataSource, embedded).finally(() => dataSource.destroy());
  } finally {
    await embedded?.close();
  }
}

function mysqlConnection(url: URL) {
  return {
    host: socketHost(url),
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    charset: 'utf8mb4_bin',
    timezone: 'Z',
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...TLS[url.searchParams.get('ssl-mode') ?? ''],
  };
}

/** TypeORM compares schemas wrongly if it takes MariaDB for MySQL. */
async function mysqlDialect(url: URL, setting: string): Promise<'mysql' | 'mariadb'> {
  // The default export, because a bundler may give a CommonJS package no other.
  const { createConnection } = (await loadPackage('mysql2', () => import('mysql2/promise'))).default;
  try {
    const connection = await createConnection(mysqlConnection(url));
    const [rows] = await connection.query('SELECT VERSION() AS version');
    await connection.end();
    return checkedDialect((rows as { version: string }[])[0]?.version ?? '', setting);
  } catch (error) {
    throw error instanceof StartUpError ? error : unreachable(setting, url, error);
  }
}

function checkedDialect(version: string, setting: string): 'mysql' | 'mariadb' {
  const dialect = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
  // MariaDB may put 5.5.5- in front of its version.
  const known = coerce(version.replace(/^5\.5\.5-/, '')) ?? '0.0.0';
  if (lt(known, dialect === 'mariadb' ? '10.6.0' : '8.0.0'))
    throw new StartUpError(
      `${setting}: the server has version ${version}; use MySQL 8 or MariaDB 10.6 or later (for SKIP LOCKED)`,
    );
  return dialect;
}

/**
 * TLS options for the `ssl-mode` parameter of a mysql:// URL. Without the parameter nothing is encrypted.
 * By default mysql2 does not compare the host name with the certificate. NODE_EXTRA_CA_CERTS adds further
 * authorities.
 */
const TLS: Record<string, { ssl: { verifyIdentity?: boolean; rejectUnauthorized: boolean } }> = {
  REQUIRED: { ssl: { rejectUnauthorized: false } },
  VERIFY_IDENTITY: { ssl: { rejectUnauthorized: true, verifyIdentity: true } },
};

const MIN_SOCKET_TIMEOUT_MS = 10_000;

/**
 * After this long without an answer, a database connection counts as lost: its host died, or a firewall dropped it.
 * The kernel's own timeout is about 15 minutes, and a batch of claims would hang that long. The server ends a slow statement earlier.
 */
export const socketTimeoutMs = ({ retry, databaseTimeoutMs }: SocketLimits): number =>
  Math.min(Math.max(MIN_SOCKET_TIMEOUT_MS, 2 * retry.timeoutMs, 2 * databaseTimeoutMs), MAX_TIMER_MS);

type SocketLimits = Pick<ResolvedOptions, 'retry' | 'databaseTimeoutMs'>;
