import { afterAll, beforeAll, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis, WAIT_FOR_RECONNECT } from '../../src/queue/redis-connection.js';
import { eventually } from '../support/eventually.js';
import { HANG_LIMIT_MS } from '../support/hang-limit.js';
import { OwnRedis } from '../support/own-redis.js';

let server: OwnRedis;
beforeAll(async () => {
  server = await OwnRedis.start();
});
afterAll(() => server.stop());

const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('a connection that closes while it waits leaves no timer, which would keep the process alive', async () => {
  const before = timers();
  // A timer that is left is still there when `eventually` gives up; those of others have ended by then.
  const options = { ...WAIT_FOR_RECONNECT, socketTimeout: HANG_LIMIT_MS };
  const redis = (await connectRedis({ url: new URL(server.url), isCluster: false }, options)) as Redis;
  // As BullMQ's worker waits for its next job.
  const blocking = redis.duplicate({ lazyConnect: false });
  await blocking.ping();
  const waiting = blocking.bzpopmin('nothing', 0).catch(() => null);
  await redis.ping();
  const closed = [redis, blocking].map((one) => new Promise((resolve) => one.once('end', resolve)));
  for (const one of [redis, blocking]) one.disconnect();
  await Promise.all([...closed, waiting]);
  await eventually('no further timer runs', () => timers() <= before);
});
