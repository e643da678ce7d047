import pg from 'pg';
import { type RateLimiterAbstract, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';
import type { Config } from '../config.js';
import { postgresSchema } from '../queue/queue-backend.js';
import { LIMIT_TABLE } from '../queue/limit-table.js';
import type { QueueConnections } from '../queue/queue-connections.js';
import { connectRedis, FAILS_FAST, type RedisServer } from '../queue/redis-connection.js';
import { BoundedMemory } from './bounded-memory.js';

/** A limit waits no longer than this for its store before it counts in memory. */
const PATIENCE_MS = 5_000;
const POOL = 4;

export interface CounterOptions {
  keyPrefix: string;
  points: number;
  duration: number;
}

/** Where counts live: with the queue, so that all processes share them, or in memory where the queue is embedded. */
export interface LimiterStore {
  counter(options: CounterOptions): RateLimiterAbstract;
  close(): Promise<void>;
}

export function openLimiterStore(
  { queue, queuePrefix }: Config,
  { redis }: QueueConnections,
): Promise<LimiterStore> | LimiterStore {
  if (redis) return redisStore(redis);
  if (queue.kind === 'postgres') return postgresStore(queue.url, queuePrefix);
  return { counter: (options) => new BoundedMemory(options), close: () => Promise.resolve() };
}

async function redisStore(server: RedisServer): Promise<LimiterStore> {
  const redis = await connectRedis(server, { ...FAILS_FAST, commandTimeout: PATIENCE_MS });
  return {
    counter: (options) => new RateLimiterRedis({ ...options, storeClient: redis }),
    close: async () => redis.disconnect(),
  };
}

function postgresStore(url: URL, queuePrefix: string): LimiterStore {
  const pool = new pg.Pool({
    connectionString: url.href,
    max: POOL,
    connectionTimeoutMillis: PATIENCE_MS,
    query_timeout: PATIENCE_MS,
    keepAlive: true,
  });
  pool.on('error', () => undefined);
  const table = { schemaName: postgresSchema(queuePrefix), tableName: LIMIT_TABLE, tableCreated: true };
  return {
    counter: (options) => new RateLimiterPostgres({ ...options, ...table, storeClient: pool }),
    close: () => pool.end(),
  };
}
