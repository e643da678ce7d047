import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type Job, UnrecoverableError, Worker } from 'bullmq';
import { Workers } from '../../src/queue/workers.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const TOKEN = 'by-hand';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let worker: Worker;
/** Takes jobs in the worker's place. */
let hand: Worker;

beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  const { all } = usher.running.app.get(Workers, { strict: false });
  worker = all.find((one) => one.worker.name === WEBHOOK_QUEUE)!.worker;
  hand = new Worker(worker.name, null, { ...worker.opts, autorun: false });
});
afterEach(async () => {
  receiver.behaviour = answer(200);
  await worker.resume();
});
afterAll(async () => {
  await hand.close();
  await usher.stop();
  receiver.close();
});

/** A completed order whose job nobody has taken yet. */
async function waitingOrder() {
  await worker.pause();
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, 'PENDING');
  await eventually('the job waits', () => usher.queue.getJob(id));
  return { key, id };
}

const taken = (id: string): Promise<Job> =>
  eventually(`the job ${id} is taken by hand`, async () => {
    const job = await hand.getNextJob(TOKEN, { block: false });
    return job?.id === id ? job : null;
  });

const change = (id: string, to: Partial<Webhook>) => usher.dataSource.manager.update(Webhook, { id }, to);

describe('a PENDING webhook is delivered by a retry run', () => {
  test('when its job got lost', async () => {
    const { key, id } = await waitingOrder();
    await usher.removeJob(id);
    await worker.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(1);
  });

  test('when BullMQ gave its job up', async () => {
    const { key, id } = await waitingOrder();
    await (await taken(id)).moveToFailed(new UnrecoverableError('given up'), TOKEN, false);
    await worker.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(1);
  });

  test('when BullMQ holds its job for done', async () => {
    const { key, id } = await waitingOrder();
    await (await taken(id)).moveToCompleted(null, TOKEN, false);
    await worker.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(1);
  });

  test('when BullMQ holds its job for done after a failure', async () => {
    receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
    const key = await client.completedOrder();
    await usher.attemptEnded(key, 1);
    await worker.pause();
    const { id } = await usher.webhook(key, 'PENDING');
    await (await taken(id)).moveToCompleted(null, TOKEN, false);
    await worker.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(2);
  });

  test('when errors that are not the receiver\u2019s used its job up', async () => {
    const { key, id } = await waitingOrder();
    const job = await taken(id);
    Object.assign(job, { attemptsMade: 4 });
    await job.moveToFailed(new Error('not the receiver'), TOKEN, false);
    expect(await usher.queue.getJobState(id)).toBe('failed');
    await worker.resume();
    expect((await usher.webhook(key, 'SUCCESS')).attempts).toBe(1);
  });
});

describe('a fifth attempt that was cut off', () => {
  test('ends FAILED when its job runs again', async () => {
    const { key, id } = await waitingOrder();
    await change(id, { attempts: 5, nextAttemptAt: 1 });
    await worker.resume();
    expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attempts: 5, nextAttemptAt: null });
    expect(receiver.of(key)).toHaveLength(0);
  });

  test('ends FAILED at a retry run when its job got lost', async () => {
    const { key, id } = await waitingOrder();
    await usher.removeJob(id);
    await change(id, { attempts: 5, nextAttemptAt: 1 });
    await worker.resume();
    expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attempts: 5, nextAttemptAt: null });
    expect(receiver.of(key)).toHaveLength(0);
  });
});

describe('a claim', () => {
  const claims = (): ClaimStore => usher.running.app.get(ClaimStore, { strict: false });

  test('is given once, also to two who ask in the same batch', async () => {
    const { id } = await waitingOrder();
    const kinds = (await claims().claim([id, id])).map(({ kind }) => kind);
    expect(kinds).toEqual(['claimed', 'not-due']);
  });

  test('is given once to twenty who ask at the same moment', async () => {
    const { id } = await waitingOrder();
    const answers = await Promise.all(Array.from({ length: 20 }, () => claims().claim([id])));
    expect(answers.flat().filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
  });

  test('that is given back is no attempt, and leaves no row of one', async () => {
    const { id } = await waitingOrder();
    const [first] = await claims().claim([id]);
    if (first?.kind !== 'claimed') throw new Error('not claimed');
    await claims().release(first.claim);
    const { webhook, attempts } = await usher.webhooks.show(id);
    expect(webhook).toMatchObject({ status: 'PENDING', attempts: 0 });
    expect(attempts).toEqual([]);
  });
});
