import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { socketHost } from '../values/connection-url.js';
import { StartUpError, unreachable } from '../values/start-up-error.js';

const RECONNECT_AT_MOST_EVERY_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A worker asks at least every 10 s; a Redis that says nothing for so long is gone, whatever the socket says. */
const SILENCE_MS = 30_000;

/** A Redis that start-up has found fit to hold the queue: one server, or a cluster known by one of its nodes. */
export interface RedisServer {
  url: URL;
  isCluster: boolean;
}

/** Fails fast: adding a job must never hang a request while Redis is down. */
export const FAIL_FAST: RedisOptions = { enableOfflineQueue: false, commandTimeout: 2_000, maxRetriesPerRequest: 1 };
/** Waits and reconnects for ever. */
export const WAIT_FOR_RECONNECT: RedisOptions = { maxRetriesPerRequest: null, socketTimeout: SILENCE_MS };

/** Connected when it answers, or trying to be. Whoever asks for it closes it. */
export async function connectRedis({ url, isCluster }: RedisServer, behaviour: RedisOptions): Promise<Redis | Cluster> {
  const redis = isCluster ? clusterOf(url, behaviour) : singleOf(url, behaviour);
  // It reconnects for ever, and whoever uses it hears of its faults by what they ask of it.
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
    // By the names that the nodes have for each other, which are those of their certificates.
    dnsLookup: (name, callback) => callback(null, name),
  });
}

const pause = (times: number): number => Math.min(times * 100, RECONNECT_AT_MOST_EVERY_MS);

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

/** Refuses a Redis that cannot be reached, is too old, or may throw jobs away when memory runs short. */
export async function checkRedis(url: URL): Promise<RedisServer> {
  const { db, ...server } = address(url);
  const redis = new Redis({ ...server, lazyConnect: true, connectTimeout: CONNECT_TIMEOUT_MS, retryStrategy: null });
  let fault: unknown;
  redis.on('error', (error) => (fault = error));
  try {
    await redis.connect();
    // Asked for by the connection itself, a database that does not exist is an error nobody can catch.
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
    throw new StartUpError(`QUEUE_URL: Redis ${major}.${minor} is too old; Usher needs 6.2`);
  const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1];
  if (policy && policy !== 'noeviction') {
    throw new StartUpError(
      `QUEUE_URL: this Redis evicts keys (maxmemory-policy ${policy}); set it to noeviction, or jobs get lost`,
    );
  }
}

function checkCluster(info: string): void {
  if (!info.includes('cluster_state:ok'))
    throw new StartUpError('QUEUE_URL: this Redis Cluster is down (see CLUSTER INFO); mend it, then start again');
}
