import type { RedisOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { StartUpError } from '../core/start-up-error.js';
import { unreachable } from '../database/unreachable.js';

const RECONNECT_AT_MOST_EVERY_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A worker asks at least every 10 s; a Redis that says nothing for so long is gone, whatever the socket says. */
const SILENCE_MS = 30_000;

/** Fails fast: adding a job must never hang a request while Redis is down. */
export function producerOptions(url: URL): RedisOptions {
  return { ...address(url), enableOfflineQueue: false, commandTimeout: 2_000, maxRetriesPerRequest: 1 };
}

/** Waits and reconnects for ever. */
export function workerOptions(url: URL): RedisOptions {
  return { ...address(url), maxRetriesPerRequest: null, socketTimeout: SILENCE_MS };
}

function address(url: URL) {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 6379),
    ...(url.username && { username: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    db: Number(url.pathname.slice(1) || 0),
    ...(url.protocol === 'rediss:' && { tls: {} }),
    retryStrategy: (times: number) => Math.min(times * 100, RECONNECT_AT_MOST_EVERY_MS),
  };
}

/** Refuses a Redis that cannot be reached, is too old, or may throw jobs away when memory runs short. */
export async function checkRedis(url: URL): Promise<void> {
  const { db, ...server } = address(url);
  const redis = new Redis({
    ...server,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: null,
  });
  let fault: unknown;
  redis.on('error', (error) => (fault = error));
  try {
    await redis.connect();
    // Asked for by the connection itself, a database that does not exist is an error nobody can catch.
    await redis.select(db);
    checkServer(await redis.info());
  } catch (error) {
    throw error instanceof StartUpError ? error : unreachable('QUEUE_URL', url, fault ?? error);
  } finally {
    redis.disconnect();
  }
}

function checkServer(info: string): void {
  if (/redis_mode:cluster/.test(info))
    throw new StartUpError('QUEUE_URL: this Redis is part of a cluster, which is not supported; name a single one');
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
