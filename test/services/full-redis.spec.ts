import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { OwnRedis } from '../support/own-redis.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, TestUsher } from '../support/usher.js';

let redis: OwnRedis;
let usher: TestUsher;
let receiver: TestReceiver;

beforeAll(async () => {
  redis = await OwnRedis.start();
  usher = await TestUsher.start({ QUEUE_URL: redis.url });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
  await redis.stop();
});

async function expectQueueUp(value: 0 | 1): Promise<void> {
  const authorization = basic('ops', 'ops');
  await eventually(`usher_queue_up is ${value}`, async () => {
    const { body } = await usher.request('GET', '/ops/metrics', { authorization });
    return String(body.text).includes(`\nusher_queue_up ${value}\n`);
  });
}

test('while Redis is full, usher_queue_up is 0 and orders complete; they are notified once it has space', async () => {
  const client = await usher.client(receiver.url);
  await expectQueueUp(1);
  await redis.command('CONFIG', 'SET', 'maxmemory', '1mb');
  await expectQueueUp(0);
  const key = await client.completedOrder();
  expect(await usher.webhook(key, 'PENDING')).toMatchObject({ attempts: 0 });
  expect((await usher.request('GET', '/health/ready', {})).status).toBe(200);
  await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(1);
  await expectQueueUp(1);
});
