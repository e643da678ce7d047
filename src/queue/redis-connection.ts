import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { socketHost } from '../values/connection-url.js';
import { StartUpError, unreachable } from '../values/start-up-error.js';

const MAX_RECONNECT_DELAY_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A worker sends a command at least every 10 s, so a connection without an answer for this long is dead. */
const SOCKET_TIMEOUT_MS = 30_000;

/** A Redis that passed the start-up check: a single server, or a cluster reached through one of its nodes. */
export interface RedisServer {
  url: URL;
  isCluster: boolean;
}

/** For adding jobs: fails fast, because a request must not hang while Redis is down. */
export const FAIL_FAST: RedisOptions = { enableOfflineQueue: false, commandTimeout: 2_000, maxRetriesPerRequest: 1 };
/** For workers: commands wait until the connection is back. */
export const WAIT_FOR_RECONNECT: RedisOptions = { maxRetriesPerRequest: null, socketTimeout: SOCKET_TIMEOUT_MS };

/** Returns when Redis answers, or after the first failed attempt, and then reconnects. The caller closes it. */
export async function connectRedis({ url, isCluster }: RedisServer, behaviour: RedisOptions): Promise<Redis | Cluster> {
  const redis = isCluster ? clusterOf(url, behaviour) : singleOf(url, behaviour);
  // It reconnects for ever. Callers see the errors in their own commands.
  redis.on('error', () => undefined);
  await redis.connect().catch(() => undefined);
  return redis;
}

function singleOf(url: URL, behaviour: RedisOptions): Redis {
  return new Redis({ ...address(url), ...behaviour, lazyConnect: true, retryStrategy: pause });
}

function clusterOf(url: URL, behaviour: RedisOptions): Cluster {
  const { host, port, db: _, ...access } = address(url);
  return new Cluster([{ host, port }], {
    redisOptions: { ...access, ...behaviour },
    enableOfflineQueue: behaviour.enableOfflineQueue ?? true,
    lazyConnect: true,
    clusterRetryStrategy: pause,
    // Node names stay unresolved, because TLS checks them against the nodes' certificates.
    dnsLookup: (name, callback) => callback(null, name),
  });
}

const pause = (times: number): number => Math.min(times * 100, MAX_RECONNECT_DELAY_MS);

function address(url: URL) {
  return {
    host: socketHost(url),
    port: Number(url.port || 6379),
    ...(url.username && { username: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    db: Number(url.pathname.slice(1) || 0),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  };
}

/** Refuses a Redis that is unreachable, too old, or configured to evict keys when memory is full. */
export async function checkRedis(url: URL): Promise<RedisServer> {
  const { db, ...server } = address(url);
  const redis = new Redis({ ...server, lazyConnect: true, connectTimeout: CONNECT_TIMEOUT_MS, retryStrategy: null });
  let fault: unknown;
  redis.on('error', (error) => (fault = error));
  try {
    await redis.connect();
    // SELECT is sent here: as a connection option, a database that does not exist causes an error that cannot be caught.
    await redis.select(db);
    const info = await redis.info();
    checkServer(info);
    const isCluster = info.includes('redis_mode:cluster');
    if (isCluster) checkCluster(await redis.cluster('INFO'));
    return { url, isCluster };
  } catch (error) {
    throw error instanceof StartUpError ? error : unreachable('QUEUE_URL', url, fault ?? error);
  } finally {
    redis.disconnect();
  }
}

function checkServer(info: string): void {
  const [major = 0, minor = 0] = (/redis_version:([\d.]+)/.exec(info)?.[1] ?? '').split('.').map(Number);
  if (major < 6 || (major === 6 && minor < 2))
    throw new StartUpError(`QUEUE_URL: Redis ${major}.${minor} is too old; use 6.2 or later`);
  const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1];
  if (policy && policy !== 'noeviction') {
    throw new StartUpError(
      `QUEUE_URL: this Redis evicts keys (maxmemory-policy ${policy}); set it to noeviction, because evicted jobs are lost`,
    );
  }
}

function checkCluster(info: string): void {
  if (!info.includes('cluster_state:ok'))
    throw new StartUpError('QUEUE_URL: this Redis Cluster is down (see CLUSTER INFO); repair it, then start again');
}
