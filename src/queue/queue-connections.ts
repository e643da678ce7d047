import * as bullmq from 'bullmq';
import { Redis } from 'ioredis';
import type { PoolClient, Pool } from 'pg';
import { loadPg } from '../database/data-source.js';
import type { EmbeddedPostgres } from '../database/embedded/index.js';
import type { ResolvedOptions } from '../usher.options.js';
import { NoAnswer, StartUpError, unreachable } from '../values/start-up-error.js';
import {
  asRefused,
  checkMayCreate,
  createLimitTable,
  hasLimitTable,
  postgresAddress,
  postgresSchema,
  renewedPool,
} from './postgres-pool.js';
import { checkKeepsJobsOnPostgres, queueMigrationName, queueSql } from './queue-migration.js';
import { checkRedis, connectRedis, FAIL_FAST, type RedisServer, WAIT_FOR_RECONNECT } from './redis-connection.js';
import { queueWarnings } from './repeated-warnings.js';

const FAIL_FAST_MS = 2_000;
const PRODUCER_POOL = 4;
const WORKER_POOL = 12;
const PROBE_KEY_LIFETIME_MS = 10_000;

export const QUEUE_CONNECTIONS = Symbol('QueueConnections');

/** How this process reaches the queue: to add jobs (fails fast) and to work on them (waits). */
export interface QueueConnections {
  producer: bullmq.ConnectionOptions;
  worker: bullmq.ConnectionOptions;
  /** Null where the queue is in a database. */
  redis: RedisServer | null;
  /** Rejects while the queue accepts no jobs or does not answer. */
  probe(): Promise<unknown>;
  close(): Promise<void>;
}

/** The braces are a Redis Cluster hash tag: all keys of the prefix are on one node, as BullMQ's scripts need. */
export const keyPrefix = ({ queue, queuePrefix }: ResolvedOptions): string =>
  queue.kind === 'redis' ? `{${queuePrefix}}` : queuePrefix;

/** Checks the queue's server and opens the connections of this process. */
export async function openQueueConnections(
  config: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
): Promise<QueueConnections> {
  const { queue } = config;
  if (queue.kind === 'none') return noQueue();
  if (queue.kind === 'redis') return openRedis(config, await findRedis(queue.url, config));
  const pools = await openPools(config, embedded);
  const isOwn = config.database.kind === 'embedded' && queue.kind === 'database';
  await withClient(pools.worker, config, async (client) => {
    if (isOwn) await bullmq.runMigrations(client, postgresSchema(config.queuePrefix));
    else if (await lacksTables(client, config)) throw missingTables(config);
    else await checkMayCreate(client, postgresSchema(config.queuePrefix));
  }).catch(async (error: unknown) => {
    await pools.close();
    throw error;
  });
  return pools as unknown as QueueConnections;
}

/** A process that only records starts while Redis is down, because tokens and orders need no queue. */
async function findRedis(url: URL, { names, deliver }: ResolvedOptions): Promise<RedisServer> {
  try {
    return await checkRedis(url, names.queueUrl);
  } catch (error) {
    if (deliver || !(error instanceof NoAnswer)) throw error;
    queueWarnings.warn(`${error.message}; until then notifications wait in the database`);
    return { url, isCluster: false };
  }
}

async function openRedis(config: ResolvedOptions, redis: RedisServer): Promise<QueueConnections> {
  const [producer, worker] = await Promise.all([
    connectRedis(redis, FAIL_FAST),
    connectRedis(redis, WAIT_FOR_RECONNECT),
  ]);
  return {
    producer,
    worker,
    redis,
    // It writes, because a Redis whose memory is full still answers reads.
    probe: () => producer.set(`${keyPrefix(config)}:probe`, '', 'PX', PROBE_KEY_LIFETIME_MS),
    close: async () => [producer, worker].forEach((connection) => connection.disconnect()),
  };
}

/** For a process that adds no jobs. BullMQ's queues are made with a closed connection, so they reject every job. */
function noQueue(): QueueConnections {
  const closed = new Redis({ lazyConnect: true, retryStrategy: null });
  closed.disconnect();
  return {
    producer: closed,
    worker: closed,
    redis: null,
    probe: () => Promise.reject(new Error('this process has no queue')),
    close: () => Promise.resolve(),
  };
}

/** Creates or updates the queue's tables on Postgres; Redis needs none. Returns whether there was anything to do. */
export function migrateQueue(config: ResolvedOptions, embedded: EmbeddedPostgres | null): Promise<boolean> {
  return withPostgres(config, embedded, async (client) => {
    if (!(await lacksTables(client, config))) return false;
    const schema = postgresSchema(config.queuePrefix);
    await bullmq.runMigrations(client, schema);
    if (needsLimitTable(config)) await createLimitTable(client, schema);
    return true;
  });
}

/** The SQL of what {@link migrateQueue} would do. */
export async function pendingQueueSql(config: ResolvedOptions, embedded: EmbeddedPostgres | null): Promise<string[]> {
  let statements: string[] = [];
  await withPostgres(config, embedded, async (client) => {
    const isMissing = await lacksTables(client, config);
    const schema = postgresSchema(config.queuePrefix);
    if (isMissing) statements = await queueSql(await tableVersion(client, schema), schema);
    return isMissing;
  });
  return statements;
}

export const isQueueMissing = (config: ResolvedOptions, embedded: EmbeddedPostgres | null): Promise<boolean> =>
  withPostgres(config, embedded, (client) => lacksTables(client, config));

/** False where the queue is on Redis, which has no tables. */
async function withPostgres(
  config: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  work: (client: PoolClient) => Promise<boolean>,
): Promise<boolean> {
  if (config.queue.kind === 'redis' || config.queue.kind === 'none') return false;
  const { worker, close } = await openPools(config, embedded);
  return withClient(worker, config, work).finally(close);
}

async function lacksTables(client: PoolClient, config: ResolvedOptions): Promise<boolean> {
  const schema = postgresSchema(config.queuePrefix);
  if ((await tableVersion(client, schema)) < bullmq.LATEST_SCHEMA_VERSION) return true;
  return needsLimitTable(config) && !(await hasLimitTable(client, schema));
}

/** The version of BullMQ's tables; 0 where there are none. */
async function tableVersion(client: PoolClient, schema: string): Promise<number> {
  try {
    return await bullmq.assertSchemaCompatibility(client, schema);
  } catch (error) {
    if (error instanceof bullmq.SchemaMigrationRequiredError) return 0;
    throw error;
  }
}

/** With an embedded queue the limits are counted in memory. */
const needsLimitTable = ({ database, queue }: ResolvedOptions): boolean =>
  database.kind !== 'embedded' || queue.kind === 'postgres';

/** BullMQ 5 has no queue on Postgres, so what needs it is loaded only here. */
async function selectPostgres({ names }: ResolvedOptions): Promise<void> {
  checkKeepsJobsOnPostgres(names.queueUrl);
  const { selectBackendByConnection } = await import('./postgres-backend.js');
  selectBackendByConnection();
}

async function openPools(config: ResolvedOptions, embedded: EmbeddedPostgres | null) {
  await selectPostgres(config);
  const pg = await loadPg();
  const server = postgresAddress(config);
  // At another level BullMQ's statements fail beside each other. The embedded database has no such default.
  const isolation = server ? '-c default_transaction_isolation=read\\ committed ' : '';
  const settings = `${isolation}-c search_path=${searchPath(config)}`;
  const options = { ...(server ?? embedded?.connection), options: settings, keepAlive: true };
  const failFast = { connectionTimeoutMillis: FAIL_FAST_MS, query_timeout: FAIL_FAST_MS };
  const producer = renewedPool(pg, { ...options, ...failFast, max: PRODUCER_POOL }, (error) => error);
  const worker = renewedPool(pg, { ...options, max: WORKER_POOL }, asRefused);
  return {
    producer,
    worker,
    redis: null,
    // A server that became read-only refuses it.
    probe: () => producer.query('DELETE FROM job WHERE FALSE'),
    // Nest 11 runs the shutdown hooks again when an application is closed twice.
    close: async () => void (await Promise.all([producer, worker].map((pool) => pool.ending || pool.end()))),
  };
}

/** In quotes, because Postgres reads other names in lower case. */
const searchPath = ({ queuePrefix }: ResolvedOptions): string => `"${postgresSchema(queuePrefix)}"`;

/** Some poolers take a connection and ignore its options. BullMQ would find no tables, and deliver nothing. */
async function checkSearchPath(client: PoolClient, config: ResolvedOptions): Promise<void> {
  const { rows } = await client.query<{ path: string }>(`SELECT current_setting('search_path') AS path`);
  if (rows[0]?.path !== searchPath(config)) throw behindPooler(config);
}

const behindPooler = ({ names }: ResolvedOptions): StartUpError =>
  new StartUpError(
    `the queue cannot use a pooler such as PgBouncer; set ${names.queueUrl} to the address of Postgres itself`,
  );

/** Also after an update of BullMQ that needs newer tables. */
function missingTables({ database, queuePrefix }: ResolvedOptions): StartUpError {
  const remedy =
    database.kind === 'host'
      ? `run the migration ${queueMigrationName(queuePrefix)} of usherQueueMigration({ prefix: '${queuePrefix}' }), or call migrateUsherQueue() with the options of UsherModule`
      : `run "usher migrate" first, or correct QUEUE_PREFIX=${queuePrefix}`;
  return new StartUpError(`the queue lacks tables that BullMQ needs, or has old ones; ${remedy}`);
}

/** Says what to do. Without an address of its own the queue is in the database. */
function explained(error: unknown, config: ResolvedOptions): unknown {
  const { queue, database, names } = config;
  if (error instanceof StartUpError) return error;
  if (String(error).includes('unsupported startup parameter')) return behindPooler(config);
  if ('url' in queue) return unreachable(names.queueUrl, queue.url, error);
  return database.kind === 'postgres' ? unreachable(names.databaseUrl, database.url, error) : error;
}

async function withClient<T>(
  pool: Pool,
  config: ResolvedOptions,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  try {
    const client = await pool.connect();
    return await checkSearchPath(client, config)
      .then(() => work(client))
      .finally(() => client.release());
  } catch (error) {
    throw explained(error, config);
  }
}
