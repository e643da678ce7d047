import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis, WAIT_FOR_RECONNECT } from '../../src/queue/redis-connection.js';
import { OwnRedis } from '../support/own-redis.js';

let server: OwnRedis;
beforeAll(async () => {
  server = await OwnRedis.start();
});
afterAll(() => server.stop());

const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('a connection that closes while it waits leaves no timer, which would keep the process alive', async () => {
  const before = timers();
  const redis = (await connectRedis({ url: new URL(server.url), isCluster: false }, WAIT_FOR_RECONNECT)) as Redis;
  // As BullMQ's worker waits for its next job.
  const blocking = redis.duplicate({ lazyConnect: false });
  await blocking.ping();
  const waiting = blocking.bzpopmin('nothing', 0).catch(() => null);
  await redis.ping();
  const closed = [redis, blocking].map((one) => new Promise((resolve) => one.once('end', resolve)));
  for (const one of [redis, blocking]) one.disconnect();
  await Promise.all([...closed, waiting]);
  expect(timers()).toBeLessThanOrEqual(before);
});
