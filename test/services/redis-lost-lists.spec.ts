import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { UnrecoverableError } from 'bullmq';
import type { Redis } from 'ioredis';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { eventually } from '../support/eventually.js';
import { ManualWorker, TOKEN } from '../support/manual-worker.js';
import { TestReceiver } from '../support/receiver.js';
import { type TestClient, TestUsher } from '../support/usher.js';

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
  const { producer } = usher.running.app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false });
  expect(await (producer as Redis).del(usher.queue.toKey(name))).toBe(1);
  expect(await usher.queue.getJobState(id)).toBe('unknown');
  await worker.running.resume();
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  expect(receiver.of(key)).toHaveLength(1);
});
