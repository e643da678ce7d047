import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import { type Queue, UnrecoverableError } from 'bullmq';
import type { Redis } from 'ioredis';
import { SANDBOX_QUEUE } from '../../src/orders/sandbox/sandbox.module.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { RETRY_RUN_QUEUE } from '../../src/webhooks/queue/retry-run.js';
import { eventually } from '../support/eventually.js';
import { ManualWorker, TOKEN, workerOf } from '../support/manual-worker.js';
import { TestReceiver } from '../support/receiver.js';
import { COMPLETION, type TestClient, TestUsher } from '../support/usher.js';
import { finished, insertFailed } from '../webhooks/undelivered/support.js';

const HOUR_MS = 3_600_000;

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let worker: ManualWorker;

beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  worker = ManualWorker.of(usher);
});
afterAll(async () => {
  await worker.close();
  await usher.stop();
  receiver.close();
});

const queueOf = (name: string): Queue => usher.running.app.get<Queue>(getQueueToken(name), { strict: false });

const redis = (): Redis =>
  usher.running.app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false }).producer as Redis;

/** What an operator does who deletes keys one by one, or a Redis that evicts them. */
async function lose(queue: Queue, key: string): Promise<void> {
  expect(await redis().del(queue.toKey(key))).toBe(1);
}

/** By the key that an operator deletes: how a waiting job gets there. */
const MOVES: Record<string, (id: string) => Promise<unknown>> = {
  wait: () => Promise.resolve(),
  delayed: async (id) => (await worker.take(id)).moveToDelayed(Date.now() + 2 * HOUR_MS, TOKEN),
  failed: async (id) => (await worker.take(id)).moveToFailed(new UnrecoverableError('by a fault'), TOKEN, false),
};

test.each(Object.keys(MOVES))('a webhook is delivered by a retry run when Redis has lost the key %s', async (name) => {
  await worker.running.pause();
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, 'PENDING');
  await eventually('its job is waiting', async () => (await usher.queue.getJobState(id)) === 'waiting');
  await MOVES[name]!(id);
  await lose(usher.queue, name);
  expect(await usher.queue.getJobState(id)).toBe('unknown');
  await worker.running.resume();
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  expect(receiver.of(key)).toHaveLength(1);
});

test('a job whose content is not JSON is added again, and does not keep a retry run from others', async () => {
  await worker.running.pause();
  const keys = [await client.completedOrder(), await client.completedOrder()];
  for (const key of keys) {
    const { id } = await usher.webhook(key, 'PENDING');
    await eventually('its job is waiting', async () => (await usher.queue.getJobState(id)) === 'waiting');
    if (key === keys[0]) await redis().hset(usher.queue.toKey(id), 'data', '{');
  }
  await lose(usher.queue, 'wait');
  await worker.running.resume();
  for (const key of keys) expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
});

test.each(['its list', 'its content'])('a resend is finished by a retry run when Redis has lost %s', async (lost) => {
  await insertFailed(client, [`resend without ${lost}`]);
  const queue = queueOf(RETRY_RUN_QUEUE);
  await workerOf(usher, RETRY_RUN_QUEUE).pause();
  const { body } = await client.call('POST', '/webhooks/resend', { status: 'FAILED' });
  const job = `resend-${String(body.id)}`;
  await eventually('its job is waiting', async () => (await queue.getJobState(job)) === 'prioritized');
  await lose(queue, lost === 'its list' ? 'prioritized' : job);
  await workerOf(usher, RETRY_RUN_QUEUE).resume();
  expect(await finished(client.call.bind(client), body.id)).toMatchObject({ resent: 1 });
});

test('a repeated request for a delayed completion schedules it again when Redis has lost the list', async () => {
  const key = await client.order();
  const queue = queueOf(SANDBOX_QUEUE);
  const later = { ...COMPLETION, delay: '10m' };
  await client.complete(key, later);
  await lose(queue, 'delayed');
  expect(await queue.getJobState(orderIdOf(key)!)).toBe('unknown');
  expect((await client.complete(key, later)).status).toBe(202);
  expect(await queue.getJobState(orderIdOf(key)!)).toBe('delayed');
});
