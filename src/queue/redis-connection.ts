import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { SentinelUrl } from '../values/urls/connection-url.js';
import { socketHost } from '../values/urls/notify-url.js';
import { StartUpError, unreachable } from '../values/start-up-error.js';
import { isReplica, leaveReplica, PrimaryConnector, RESEND } from './redis-failover.js';

const MAX_RECONNECT_DELAY_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
const FAIL_FAST_MS = 2_000;
/** A command of a worker is answered within 20 s, so a connection without an answer for this long is dead. */
const SOCKET_TIMEOUT_MS = 30_000;

/** One server, a primary found by Sentinels, or a cluster reached through one of its nodes. */
export interface RedisServer {
  url: URL;
  isCluster: boolean;
}

/** For adding jobs: fails fast, because a request must not hang while Redis is down. */
export const FAIL_FAST: RedisOptions = {
  enableOfflineQueue: false,
  commandTimeout: FAIL_FAST_MS,
  // Replaces a connection whose server vanished without closing it.
  socketTimeout: 2 * FAIL_FAST_MS,
  maxRetriesPerRequest: 1,
};
/** For workers: commands wait until the connection is back. */
export const WAIT_FOR_RECONNECT: RedisOptions = {
  maxRetriesPerRequest: null,
  socketTimeout: SOCKET_TIMEOUT_MS,
};

/** Returns when Redis answers, or after the first failed attempt, and then reconnects. The caller closes it. */
export async function connectRedis({ url, isCluster }: RedisServer, options: RedisOptions): Promise<Redis | Cluster> {
  const behaviour = { reconnectOnError: leaveReplica(RESEND), ...options };
  const redis = isCluster
    ? clusterOf(url, behaviour)
    : new SingleConnection({
        ...primaryOf(url),
        ...behaviour,
        db: databaseOf(url),
        lazyConnect: true,
        retryStrategy: pause,
      });
  if (options.enableOfflineQueue === false) rejectWithReason(redis);
  // It reconnects for ever. Callers see the errors in their own commands.
  redis.on('error', () => undefined);
  await redis.connect().catch(() => undefined);
  return redis;
}

/**
 * ioredis leaves its timer of `socketTimeout` running when a connection closes while a command waits for its answer. The timer
 * would keep the process alive, and end the connection that comes next.
 */
class SingleConnection extends Redis {
  constructor(options: RedisOptions) {
    super(options);
    this.on('close', () => {
      const waiting = this as object as { socketTimeoutTimer?: NodeJS.Timeout | undefined };
      clearTimeout(waiting.socketTimeoutTimer);
      waiting.socketTimeoutTimer = undefined;
    });
  }

  /** BullMQ creates its blocking connections by this method. */
  override duplicate(override?: Partial<RedisOptions>): SingleConnection {
    return new SingleConnection({ ...this.options, ...override });
  }
}

/** While there is no connection, ioredis would reject commands with the name of an option; this rejects them with the reason. */
function rejectWithReason(redis: Redis | Cluster): void {
  const { isCluster } = redis;
  let fault: Error & { code?: string } = new Error(
    isCluster ? 'no node of the Redis Cluster answers' : 'Redis is not connected yet',
  );
  const send: Redis['sendCommand'] = redis.sendCommand;
  const sendIfConnected: typeof send = (...given) => {
    const [command] = given;
    if (!['connecting', 'reconnecting', 'close'].includes(redis.status)) return send.apply(redis, given);
    command.reject(new Error(fault.message || fault.code));
    return command.promise;
  };
  redis.sendCommand = sendIfConnected;
  // The errors of a cluster do not contain the reason.
  if (!isCluster) redis.on('error', (error: Error) => (fault = error));
  redis.on('close', () => (redis.sendCommand = sendIfConnected));
  redis.on('ready', () => (redis.sendCommand = send));
}

function clusterOf(url: URL, behaviour: RedisOptions): Cluster {
  return new Cluster([endpointOf(url)], {
    redisOptions: { ...accessTo(url), ...behaviour },
    enableOfflineQueue: behaviour.enableOfflineQueue ?? true,
    lazyConnect: true,
    clusterRetryStrategy: pause,
    // Node names stay unresolved, because TLS checks them against the nodes' certificates.
    dnsLookup: (name, callback) => callback(null, name),
  });
}

const pause = (times: number): number => Math.min(times * 100, MAX_RECONNECT_DELAY_MS);

const endpointOf = (url: URL) => ({ host: socketHost(url), port: Number(url.port || 6379) });

const databaseOf = (url: URL): number => Number(url instanceof SentinelUrl ? url.database : url.pathname.slice(1));

const accessTo = (url: URL): RedisOptions => ({
  username: decodeURIComponent(url.username),
  password: decodeURIComponent(url.password),
  ...(url.protocol.startsWith('rediss') && { tls: {} }),
  connectTimeout: CONNECT_TIMEOUT_MS,
});

/** How to reach the one server that takes writes. Each new connection resolves its name, or asks the Sentinels, again. */
function primaryOf(url: URL): RedisOptions {
  if (!(url instanceof SentinelUrl)) return { ...accessTo(url), ...endpointOf(url), Connector: PrimaryConnector };
  const access = accessTo(url);
  return {
    ...access,
    sentinels: url.sentinels,
    name: url.group,
    sentinelRetryStrategy: pause,
    sentinelCommandTimeout: FAIL_FAST_MS,
    sentinelUsername: url.searchParams.get('sentinel_username') ?? '',
    sentinelPassword: url.searchParams.get('sentinel_password') ?? '',
    ...(access.tls && { enableTLSForSentinelMode: true, sentinelTLS: access.tls }),
  };
}

/**
 * Refuses a Redis that is unreachable, a replica, too old, or configured to evict keys when memory is full. `setting`
 * names the address in messages.
 */
export async function checkRedis(url: URL, setting: string): Promise<RedisServer> {
  const { Connector: _, ...server } = primaryOf(url);
  const singleTry: RedisOptions = {
    retryStrategy: null,
    sentinelRetryStrategy: () => null,
    // A load balancer without a server, or another program, may take the connection and never answer.
    socketTimeout: CONNECT_TIMEOUT_MS,
  };
  const redis = new Redis({ ...server, lazyConnect: true, ...singleTry });
  let fault: unknown;
  redis.on('error', (error) => (fault = isSocketTimeout(error) ? Object.assign(error, { code: 'ETIMEDOUT' }) : error));
  try {
    await redis.connect();
    // SELECT is sent here: as a connection option, a database that does not exist causes an error that cannot be caught.
    await redis.select(databaseOf(url));
    const info = await redis.info();
    checkServer(info, setting);
    const isCluster = info.includes('redis_mode:cluster');
    if (isCluster) checkCluster(await redis.cluster('INFO'), setting);
    return { url, isCluster };
  } catch (error) {
    throw error instanceof StartUpError
      ? error
      : unreachable(setting, url, sentinelFault(url, error) ?? fault ?? error);
  } finally {
    redis.disconnect();
  }
}

const isSocketTimeout = ({ message }: Error): boolean => message.startsWith('Socket timeout');

/** The reason inside ioredis's message that all Sentinels are unreachable, which it also uses if they refuse. */
function sentinelFault(url: URL, error: unknown): Error | null {
  const [, reason = ''] = /^All sentinels are unreachable.* Last error: (.*)$/.exec((error as Error).message) ?? [];
  if (reason === '' || !(url instanceof SentinelUrl)) return null;
  if (reason.includes('No such master')) return new Error(`the Sentinels know no primary named ${url.group}`);
  return Object.assign(new Error(reason), reason === 'Connection is closed.' && { code: 'ETIMEDOUT' });
}

function checkServer(info: string, setting: string): void {
  if (isReplica(/role:(\w+)/.exec(info)?.[1]))
    throw new StartUpError(`${setting}: this Redis is a replica and takes no jobs; use the address of its primary`);
  const [major = 0, minor = 0] = (/redis_version:([\d.]+)/.exec(info)?.[1] ?? '').split('.').map(Number);
  if (major < 6 || (major === 6 && minor < 2))
    throw new StartUpError(`${setting}: Redis ${major}.${minor} is too old; use 6.2 or later`);
  const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1];
  if (policy && policy !== 'noeviction') {
    throw new StartUpError(
      `${setting}: this Redis evicts keys (maxmemory-policy ${policy}); set it to noeviction, because evicted jobs are lost`,
    );
  }
}

function checkCluster(info: string, setting: string): void {
  if (!info.includes('cluster_state:ok'))
    throw new StartUpError(`${setting}: this Redis Cluster is down (see CLUSTER INFO); repair it, then start again`);
}
