import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { hang, TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';

const INTERVAL_MS = 3_600_000;
const SLOTS = 16;
const MANY = 40;

let usher: TestUsher;
let slow: TestReceiver;
let quick: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({
    WEBHOOK_CONCURRENCY: String(SLOTS),
    WEBHOOK_TIMEOUT: '1h',
    WEBHOOK_RETRY_EVERY: '24h',
    WEBHOOK_RETRY_MIN_INTERVAL: `${INTERVAL_MS}ms`,
  });
  [slow, quick] = await Promise.all([TestReceiver.start('0.0.0.0'), TestReceiver.start()]);
  slow.behaviour = hang;
});
afterAll(async () => {
  slow.close();
  await usher.stop();
  quick.close();
});

test('one client with many hosts that hang gets its share; the rest is deferred, uses no attempt and delays no other client', async () => {
  const client = await usher.client(slow.url);
  const orders = Array.from({ length: MANY }, (_, n) => client.order({ notifyUrl: slow.urlAt(`127.0.1.${n}`) }));
  for (const key of await Promise.all(orders)) await client.complete(key);
  const deferred = await eventually('the others are deferred for an interval', async () => {
    const delayed = await usher.queue.getDelayed();
    // BullMQ computes `delay` from a time that is up to some milliseconds later.
    const areLate = delayed.every(({ delay }) => delay > INTERVAL_MS / 2);
    return delayed.length === MANY - SLOTS / 8 && areLate ? delayed : null;
  });
  expect(new Set(deferred.map(({ delay }) => delay)).size).toBeGreaterThan(1);
  for (const { id } of deferred) expect((await usher.webhooks.show(id!)).webhook).toMatchObject({ attemptCount: 0 });
  await eventually('those with a slot have arrived', () => slow.arrivals.length >= SLOTS / 8);
  expect(slow.arrivals).toHaveLength(SLOTS / 8);
  const other = await usher.client(quick.url);
  expect((await usher.webhook(await other.completedOrder(), 'SUCCESS')).attemptCount).toBe(1);
});
