import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import { type Queue, UnrecoverableError } from 'bullmq';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { RETRY_RUN_QUEUE } from '../../src/webhooks/queue/retry-run.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { eventually } from '../support/eventually.js';
import { ManualWorker, TOKEN } from '../support/manual-worker.js';
import { answer, TestReceiver } from '../support/receiver.js';
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
afterEach(async () => {
  receiver.behaviour = answer(200);
  await worker.running.resume();
});
afterAll(async () => {
  await worker.close();
  await usher.stop();
  receiver.close();
});

/** A completed order whose job is still waiting. */
async function waitingOrder() {
  await worker.running.pause();
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, 'PENDING');
  await eventually('the job is waiting', () => usher.queue.getJob(id));
  return { key, id };
}

const updateWebhook = (id: string, to: Partial<Webhook>) => usher.dataSource.manager.update(Webhook, { id }, to);

describe('a PENDING webhook is delivered by a retry run', () => {
  test('when its job was lost', async () => {
    const { key, id } = await waitingOrder();
    await usher.removeJob(id);
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  });

  test('when BullMQ failed its job permanently', async () => {
    const { key, id } = await waitingOrder();
    await (await worker.take(id)).moveToFailed(new UnrecoverableError('failed permanently'), TOKEN, false);
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  });

  test('when BullMQ has marked its job as completed', async () => {
    const { key, id } = await waitingOrder();
    await (await worker.take(id)).moveToCompleted(null, TOKEN, false);
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  });

  test('when BullMQ has marked its job as completed after a failed attempt', async () => {
    receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
    const key = await client.completedOrder();
    await usher.attemptEnded(key, 1);
    await worker.running.pause();
    const { id } = await usher.webhook(key, 'PENDING');
    await (await worker.take(id)).moveToCompleted(null, TOKEN, false);
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(2);
  });

  test('when a worker whose clock was two hours ahead has deferred its job', async () => {
    const { key, id } = await waitingOrder();
    const { now } = Date;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 2 * HOUR_MS);
    try {
      await (await worker.take(id)).moveToDelayed(Date.now() + 1, TOKEN);
    } finally {
      clock.mockRestore();
    }
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  });

  test('when its job was delayed on the dashboard for longer than Usher does', async () => {
    const { key, id } = await waitingOrder();
    await (await worker.take(id)).moveToDelayed(Date.now() + 2 * HOUR_MS, TOKEN);
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  });

  test('when internal errors have used up the retries of its job', async () => {
    const { key, id } = await waitingOrder();
    const job = await worker.take(id);
    Object.assign(job, { attemptsMade: 4 });
    await job.moveToFailed(new Error('not the receiver'), TOKEN, false);
    expect(await usher.queue.getJobState(id)).toBe('failed');
    await worker.running.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
    // The job has all its retries again.
    expect((await usher.queue.getJob(id))?.attemptsMade).toBe(1);
  });
});

test('a PENDING webhook that is due in an hour gets a delayed job after the queue has lost everything', async () => {
  const { key, id } = await waitingOrder();
  await updateWebhook(id, { nextAttemptAt: Date.now() + HOUR_MS });
  await usher.removeJob(id);
  const runs = usher.running.app.get<Queue>(getQueueToken(RETRY_RUN_QUEUE), { strict: false });
  await eventually('a retry run found no previous one and added the job', async () => {
    await runs.clean(0, 0, 'completed');
    return (await usher.queue.getJobState(id)) === 'delayed';
  });
  await worker.running.resume();
  expect(await usher.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
});

describe('a fifth attempt that was cut off', () => {
  test('ends FAILED when its job runs again', async () => {
    const { key, id } = await waitingOrder();
    await updateWebhook(id, { attempts: 5, nextAttemptAt: 1 });
    await worker.running.resume();
    expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attemptCount: 5, nextAttemptAt: null });
    expect(receiver.of(key)).toHaveLength(0);
  });

  test('ends FAILED at a retry run when its job was lost', async () => {
    const { key, id } = await waitingOrder();
    await usher.removeJob(id);
    await updateWebhook(id, { attempts: 5, nextAttemptAt: 1 });
    await worker.running.resume();
    expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attemptCount: 5, nextAttemptAt: null });
    expect(receiver.of(key)).toHaveLength(0);
  });
});

describe('a claim', () => {
  const claims = (): ClaimStore => usher.running.app.get(ClaimStore, { strict: false });

  test('is granted once to two calls in the same batch', async () => {
    const { id } = await waitingOrder();
    const kinds = (await claims().claim([id, id])).map(({ kind }) => kind);
    expect(kinds).toEqual(['claimed', 'deferred']);
  });

  test('is granted once to twenty concurrent calls', async () => {
    const { id } = await waitingOrder();
    const results = await Promise.all(Array.from({ length: 20 }, () => claims().claim([id])));
    expect(results.flat().filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
  });

  test('that is released does not count as an attempt and leaves no attempt row', async () => {
    const { id } = await waitingOrder();
    const [first] = await claims().claim([id]);
    if (first?.kind !== 'claimed') throw new Error('not claimed');
    await claims().release(first.claim);
    const { webhook, attempts } = await usher.webhooks.show(id);
    expect(webhook).toMatchObject({ status: 'PENDING', attemptCount: 0 });
    expect(attempts).toEqual([]);
  });
});
