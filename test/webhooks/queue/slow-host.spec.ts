import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { hang, TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';

const INTERVAL_MS = 60_000;

let usher: TestUsher;
let slow: TestReceiver;
let quick: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({
    WEBHOOK_CONCURRENCY: '8',
    WEBHOOK_TIMEOUT: '60s',
    WEBHOOK_RETRY_EVERY: '24h',
    WEBHOOK_RETRY_MIN_INTERVAL: `${INTERVAL_MS}ms`,
  });
  [slow, quick] = await Promise.all([TestReceiver.start(), TestReceiver.start()]);
  slow.behaviour = hang;
});
afterAll(async () => {
  slow.close();
  await usher.stop();
  quick.close();
});

test('the jobs of a slow host are deferred at different times, use no attempt and delay no other host', async () => {
  const client = await usher.client(slow.url);
  await client.completedOrder();
  await eventually('the host is slow and a notification is deferred', async () => {
    await client.completedOrder();
    return (await usher.queue.getDelayedCount()) > 0;
  });
  await Promise.all(Array.from({ length: 10 }, () => client.completedOrder()));
  const deferred = await eventually('ten more are deferred', async () => {
    const delayed = await usher.queue.getDelayed();
    return delayed.length > 10 ? delayed : null;
  });
  const delays = deferred.map(({ delay }) => delay);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(INTERVAL_MS);
  expect(new Set(delays).size).toBeGreaterThan(1);
  for (const { id } of deferred) expect((await usher.webhooks.show(id!)).webhook).toMatchObject({ attempts: 0 });
  const other = await usher.client(quick.url);
  expect((await usher.webhook(await other.completedOrder(), 'SUCCESS')).attempts).toBe(1);
});
