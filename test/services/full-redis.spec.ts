import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { OwnRedis } from '../support/own-redis.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, TestUsher } from '../support/usher.js';

let redis: OwnRedis;
let usher: TestUsher;
let receiver: TestReceiver;

const log: { msg?: string }[] = [];

beforeAll(async () => {
  redis = await OwnRedis.start();
  const output = { write: (line: string) => void log.push(JSON.parse(line) as { msg?: string }) };
  usher = await TestUsher.start({ QUEUE_URL: redis.url, LOG_LEVEL: 'info' }, output);
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

test.each([
  { fault: 'OOM', setting: 'maxmemory', values: ['1mb', '0'] as const },
  { fault: 'NOREPLICAS', setting: 'min-replicas-to-write', values: ['1', '0'] as const },
])('while Redis answers $fault, orders complete, one line says it, and they are notified afterwards', async (given) => {
  const { fault, setting, values } = given;
  const client = await usher.client(receiver.url);
  await expectQueueUp(1);
  await redis.command('CONFIG', 'SET', setting, values[0]);
  await expectQueueUp(0);
  const keys = [await client.completedOrder(), await client.completedOrder(), await client.completedOrder()];
  for (const key of keys) expect(await usher.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
  expect((await usher.request('GET', '/health/ready', {})).status).toBe(200);
  await redis.command('CONFIG', 'SET', setting, values[1]);
  for (const key of keys) expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  await expectQueueUp(1);
  const lines = log.filter(({ msg }) => msg?.includes(`did not accept its job (${fault}`));
  expect(lines).toHaveLength(1);
});
