import type { PoolConfig } from 'pg';
import { RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';
import { loadPg } from '../database/data-source.js';
import { LIMIT_TABLE, postgresSchema, surviveLostConnections } from '../queue/postgres-backend.js';
import { postgresAddress, type QueueConnections } from '../queue/queue-connections.js';
import { connectRedis, FAIL_FAST, type RedisServer } from '../queue/redis-connection.js';
import { leaveReplica, REJECT } from '../queue/redis-failover.js';
import type { ResolvedOptions } from '../usher.options.js';
import type { SharedCounter } from './limiter.js';

/** Timeout of the shared store. */
const STORE_TIMEOUT_MS = 1_000;
const POOL_SIZE = 4;

export interface CounterOptions {
  keyPrefix: string;
  points: number;
  duration: number;
}

/** Stores the counts that all processes share, on the queue's server. */
export interface LimiterStore {
  /** Null where the queue is embedded: then there is only one process. */
  counter(options: CounterOptions): SharedCounter | null;
  close(): Promise<void>;
}

export function openLimiterStore(
  options: ResolvedOptions,
  { redis }: QueueConnections,
): Promise<LimiterStore> | LimiterStore {
  if (redis) return redisStore(redis);
  const address = postgresAddress(options);
  if (address) return postgresStore(address, options.queuePrefix);
  return { counter: () => null, close: () => Promise.resolve() };
}

async function redisStore(server: RedisServer): Promise<LimiterStore> {
  const redis = await connectRedis(server, {
    ...FAIL_FAST,
    commandTimeout: STORE_TIMEOUT_MS,
    socketTimeout: 2 * STORE_TIMEOUT_MS,
    // The limiter counts in memory at once; a client must not wait for the new primary.
    reconnectOnError: leaveReplica(REJECT),
  });
  return {
    counter: (options) => new RateLimiterRedis({ ...options, storeClient: redis }),
    close: async () => redis.disconnect(),
  };
}

async function postgresStore(address: PoolConfig, queuePrefix: string): Promise<LimiterStore> {
  const pg = await loadPg();
  const pool = new pg.Pool({
    ...address,
    max: POOL_SIZE,
    connectionTimeoutMillis: STORE_TIMEOUT_MS,
    query_timeout: STORE_TIMEOUT_MS,
    keepAlive: true,
  });
  surviveLostConnections(pool);
  const table = { schemaName: postgresSchema(queuePrefix), tableName: LIMIT_TABLE, tableCreated: true };
  return {
    counter: (options) => new RateLimiterPostgres({ ...options, ...table, storeClient: pool }),
    // Nest 11 runs the shutdown hooks again when an application is closed twice.
    close: async () => void (pool.ending || (await pool.end())),
  };
}
