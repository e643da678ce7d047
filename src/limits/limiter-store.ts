import pg from 'pg';
import {
  type RateLimiterAbstract,
  RateLimiterPostgres,
  RateLimiterRedis,
  RateLimiterMemory,
} from 'rate-limiter-flexible';
import { postgresSchema, LIMIT_TABLE } from '../queue/postgres-backend.js';
import type { QueueConnections } from '../queue/queue-connections.js';
import { connectRedis, FAIL_FAST, type RedisServer } from '../queue/redis-connection.js';
import type { ResolvedOptions } from '../usher.options.js';

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
  { queue, queuePrefix }: ResolvedOptions,
  { redis }: QueueConnections,
): Promise<LimiterStore> | LimiterStore {
  if (redis) return redisStore(redis);
  if (queue.kind === 'postgres') return postgresStore(queue.url, queuePrefix);
  return { counter: (options) => new BoundedMemory(options), close: () => Promise.resolve() };
}

async function redisStore(server: RedisServer): Promise<LimiterStore> {
  const redis = await connectRedis(server, { ...FAIL_FAST, commandTimeout: PATIENCE_MS });
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

const MOST_KEYS = 50_000;

/** Counts in this process's memory, of the most recent keys alone: nobody can grow it by making keys up. */
export class BoundedMemory extends RateLimiterMemory {
  /** Oldest use first. */
  private readonly keys = new Set<string>();

  override penalty(key: string, points?: number): ReturnType<RateLimiterMemory['penalty']> {
    this.remember(key);
    return super.penalty(key, points);
  }

  private remember(key: string): void {
    this.keys.delete(key);
    this.keys.add(key);
    if (this.keys.size > MOST_KEYS) this.forgetOldest();
  }

  private forgetOldest(): void {
    const [oldest = ''] = this.keys;
    this.keys.delete(oldest);
    void this.delete(oldest);
  }
}
