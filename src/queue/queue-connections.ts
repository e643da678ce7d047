import { assertSchemaCompatibility, type ConnectionOptions, runMigrations, SchemaMigrationRequiredError } from 'bullmq';
import type { PoolClient, PoolConfig, Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { loadPg } from '../database/data-source.js';
import type { EmbeddedPostgres } from '../database/embedded/index.js';
import type { ResolvedOptions } from '../usher.options.js';
import { StartUpError, unreachable } from '../values/start-up-error.js';
import { createLimitTable, postgresSchema, reportAsRefused } from './postgres-backend.js';
import { checkRedis, connectRedis, FAIL_FAST, type RedisServer, WAIT_FOR_RECONNECT } from './redis-connection.js';

const FAIL_FAST_MS = 2_000;
const PRODUCER_POOL = 4;
const WORKER_POOL = 12;
const PROBE_KEY_LIFETIME_MS = 10_000;

/** Injection token of {@link QueueConnections}. */
export const QUEUE_CONNECTIONS = Symbol('QueueConnections');

/** How this process reaches the queue: to add jobs (fails fast) and to work on them (waits). */
export interface QueueConnections {
  producer: ConnectionOptions;
  worker: ConnectionOptions;
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
  if (queue.kind === 'redis') return openRedis(config, await checkRedis(queue.url));
  const pools = await openPools(config, embedded);
  try {
    await checkPostgres(config, pools.worker);
  } catch (error) {
    await pools.close();
    throw error;
  }
  return pools as unknown as QueueConnections;
}

async function openRedis({ queuePrefix }: ResolvedOptions, redis: RedisServer): Promise<QueueConnections> {
  const [producer, worker] = await Promise.all([
    connectRedis(redis, FAIL_FAST),
    connectRedis(redis, WAIT_FOR_RECONNECT),
  ]);
  // The probe writes, because a Redis whose memory is full still answers reads.
  const probe = () => producer.set(`${queuePrefix}:probe`, '', 'PX', PROBE_KEY_LIFETIME_MS);
  const close = async (): Promise<void> => [producer, worker].forEach((connection) => connection.disconnect());
  return { producer, worker, redis, probe, close };
}

/** Creates or updates the queue's tables on Postgres; Redis needs none. */
export async function migrateQueue(config: ResolvedOptions, embedded: EmbeddedPostgres | null): Promise<void> {
  if (config.queue.kind === 'redis') return;
  const { worker, close } = await openPools(config, embedded);
  try {
    await withClient(worker, (client) => createTables(client, config));
  } catch (error) {
    throw explained(error, config);
  } finally {
    await close();
  }
}

async function createTables(client: PoolClient, { database, queue, queuePrefix }: ResolvedOptions): Promise<void> {
  const schema = postgresSchema(queuePrefix);
  await runMigrations(client, schema);
  if (database.kind !== 'embedded' || queue.kind === 'postgres') await createLimitTable(client, schema);
}

/** How pg reaches the queue where it is on Postgres; null where it is in the embedded database or on Redis. */
export function postgresAddress({ queue, database }: ResolvedOptions): PoolConfig | null {
  if (queue.kind === 'postgres') return { connectionString: queue.url.href };
  if (queue.kind === 'redis') return null;
  if (database.kind === 'postgres') return { connectionString: database.url.href };
  return database.kind === 'host' ? addressOf(database.dataSource) : null;
}

/** The address in the options of the application's own data source. */
function addressOf({ options }: DataSource): PoolConfig {
  if (options.type !== 'postgres') throw new StartUpError('queue.url is missing; the data source is not on Postgres');
  const { url, host, port, username: user, password, database, ssl, extra } = options;
  const given: Record<string, unknown> = { connectionString: url, host, port, user, password, database, ssl, ...extra };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

async function openPools(config: ResolvedOptions, embedded: EmbeddedPostgres | null) {
  const pg = await loadPg();
  const { queuePrefix } = config;
  const address = postgresAddress(config) ?? embedded?.connection;
  const options = { ...address, options: `-c search_path=${postgresSchema(queuePrefix)}`, keepAlive: true };
  const producer = new pg.Pool({
    ...options,
    max: PRODUCER_POOL,
    connectionTimeoutMillis: FAIL_FAST_MS,
    query_timeout: FAIL_FAST_MS,
  });
  const worker = reportAsRefused(new pg.Pool({ ...options, max: WORKER_POOL }));
  // The pool replaces a lost connection itself. Without a listener, the error event would end the process.
  for (const pool of [producer, worker]) pool.on('error', () => undefined);
  const probe = () => producer.query('SELECT 1');
  const close = async (): Promise<void> => void (await Promise.all([producer.end(), worker.end()]));
  return { producer, worker, redis: null, probe, close };
}

async function checkPostgres(config: ResolvedOptions, pool: Pool): Promise<void> {
  const { database, queue, queuePrefix } = config;
  const schema = postgresSchema(queuePrefix);
  try {
    if (database.kind === 'embedded' && queue.kind === 'database')
      await withClient(pool, (client) => runMigrations(client, schema));
    else await withClient(pool, (client) => assertSchemaCompatibility(client, schema));
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError)
      throw new StartUpError(`the queue has no tables yet, or old ones; ${remedyOf(config)}`);
    throw explained(error, config);
  }
}

const remedyOf = ({ database }: ResolvedOptions): string =>
  database.kind === 'host'
    ? 'call migrateUsherQueue() with the options of UsherModule first'
    : 'run "usher migrate" first';

/** Names the setting to correct. Without a QUEUE_URL the queue is in the database. */
function explained(error: unknown, { queue, database }: ResolvedOptions): unknown {
  if (queue.kind !== 'database') return unreachable('QUEUE_URL', queue.url, error);
  return database.kind === 'postgres' ? unreachable('DATABASE_URL', database.url, error) : error;
}

async function withClient<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}
