import type { PoolConfig } from 'pg';
import {
  type RateLimiterAbstract,
  RateLimiterPostgres,
  RateLimiterRedis,
  RateLimiterMemory,
} from 'rate-limiter-flexible';
import { loadPg } from '../database/data-source.js';
import { postgresSchema, LIMIT_TABLE } from '../queue/postgres-backend.js';
import { postgresAddress, type QueueConnections } from '../queue/queue-connections.js';
import { connectRedis, FAIL_FAST, type RedisServer } from '../queue/redis-connection.js';
import type { ResolvedOptions } from '../usher.options.js';

/** Timeout of the shared store. After it the limiter counts in memory. */
const STORE_TIMEOUT_MS = 5_000;
const POOL_SIZE = 4;

export interface CounterOptions {
  keyPrefix: string;
  points: number;
  duration: number;
}

/** Stores the counts on the queue's server, shared by all processes, or in memory if the queue is embedded. */
export interface LimiterStore {
  counter(options: CounterOptions): RateLimiterAbstract;
  close(): Promise<void>;
}

export function openLimiterStore(
  options: ResolvedOptions,
  { redis }: QueueConnections,
): Promise<LimiterStore> | LimiterStore {
  if (redis) return redisStore(redis);
  const address = postgresAddress(options);
  if (address) return postgresStore(address, options.queuePrefix);
  return { counter: (options) => new BoundedMemory(options), close: () => Promise.resolve() };
}

async function redisStore(server: RedisServer): Promise<LimiterStore> {
  const redis = await connectRedis(server, { ...FAIL_FAST, commandTimeout: STORE_TIMEOUT_MS });
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
  pool.on('error', () => undefined);
  const table = { schemaName: postgresSchema(queuePrefix), tableName: LIMIT_TABLE, tableCreated: true };
  return {
    counter: (options) => new RateLimiterPostgres({ ...options, ...table, storeClient: pool }),
    close: () => pool.end(),
  };
}

const MAX_KEYS = 50_000;

/** Counts in memory and keeps only the most recently used keys, so invented keys cannot fill the memory. */
export class BoundedMemory extends RateLimiterMemory {
  /** Least recently used key first. */
  private readonly keys = new Set<string>();

  override penalty(key: string, points?: number): ReturnType<RateLimiterMemory['penalty']> {
    this.remember(key);
    return super.penalty(key, points);
  }

  private remember(key: string): void {
    this.keys.delete(key);
    this.keys.add(key);
    if (this.keys.size > MAX_KEYS) this.forgetOldest();
  }

  private forgetOldest(): void {
    const [oldest = ''] = this.keys;
    this.keys.delete(oldest);
    void this.delete(oldest);
  }
}
