import { Global, Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { keyPrefix, QUEUE_CONNECTIONS, type QueueConnections } from '../queue/queue-connections.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Rate } from '../values/duration.js';
import { FailureLimit } from './failure-limit.js';
import { Limiter, type SharedCounter } from './limiter.js';
import type { PoolConfig } from 'pg';
import { type IRateLimiterOptions, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';
import { loadPg } from '../database/data-source.js';
import { LIMIT_TABLE, postgresAddress, postgresSchema, surviveLostConnections } from '../queue/postgres-pool.js';
import { connectRedis, FAIL_FAST, type RedisServer } from '../queue/redis-connection.js';
import { leaveReplica, REJECT } from '../queue/redis-failover.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

const STORE_TIMEOUT_MS = 1_000;
const POOL_SIZE = 4;

/** Stores the counts that all processes share, on the queue's server. */
interface LimiterStore {
  /** Null where the queue is embedded: then there is only one process. */
  counter(options: IRateLimiterOptions): SharedCounter | null;
  close(): Promise<void>;
}

function openLimiterStore(options: ResolvedOptions, { redis }: QueueConnections): Promise<LimiterStore> | LimiterStore {
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
    counter: (options) => new RateLimiterPostgres({ ...options, ...table, storeType: 'pool', storeClient: pool }),
    // Nest 11 runs the shutdown hooks again when an application is closed twice.
    close: async () => void (pool.ending || (await pool.end())),
  };
}

/** The limit of one address over all client ids, as a multiple of the limit for one client id. */
const ADDRESS_LIMIT_FACTOR = 10;

const LIMITER_STORE = Symbol('LimiterStore');

/** Creates the limiters, which share one store. */
@Injectable()
export class Limits implements OnApplicationShutdown {
  private readonly limiters = new Map<string, Limiter>();

  constructor(
    @Inject(LIMITER_STORE) private readonly store: LimiterStore,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** The one limiter of this name. */
  limiter(name: string, rate: Rate): Limiter {
    const known = this.limiters.get(name);
    if (known) return known;
    const named = { keyPrefix: `${keyPrefix(this.options)}:limit:${name}` };
    const shared = this.store.counter({ ...named, points: rate.count, duration: rate.seconds });
    const limiter = new Limiter(rate, shared);
    this.limiters.set(name, limiter);
    return limiter;
  }

  /** Limits failed authentications of one key, such as a client id at an address. */
  failureLimit(name: string, rate = this.options.authFailureLimit, next?: FailureLimit): FailureLimit {
    return new FailureLimit(this.limiter(name, rate), next);
  }

  /** Counts the failed authentications of an address over all client ids or names. */
  addressLimiter(name: string): Limiter {
    const { count, seconds } = this.options.authFailureLimit;
    return this.limiter(name, { count: count * ADDRESS_LIMIT_FACTOR, seconds });
  }

  async onApplicationShutdown(): Promise<void> {
    for (const limiter of this.limiters.values()) limiter.close();
    await this.store.close();
  }
}

@Global()
@UsherNamedModule({
  providers: [
    { provide: LIMITER_STORE, useFactory: openLimiterStore, inject: [USHER_OPTIONS, QUEUE_CONNECTIONS] },
    Limits,
  ],
  exports: [Limits],
})
export class LimitsModule {}
