import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { Client } from '../../src/clients/client.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { PURGE_QUEUE } from '../../src/retention/purge.js';
import { TestReceiver } from '../support/receiver.js';
import { COMPLETION, NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let orders: OrdersService;
let commits = 0;

beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  orders = usher.running.app.get(OrdersService, { strict: false });
  usher.dataSource.subscribers.push({ afterTransactionCommit: () => void (commits += 1) });
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const newOrders = (count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => client.order()));
const statusOf = async (key: string) => (await client.call('GET', `/movie-orders/${key}`)).body.status;

/** The answers of completions that begin at the same moment: the booking id, or the status of the problem. */
async function completeAtOnce(completions: [key: string, bookingId: string][]): Promise<unknown[]> {
  const answers = completions.map(([key, bookingId]) => orders.complete(key, { ...COMPLETION, bookingId }));
  const settled = await Promise.allSettled(answers);
  return settled.map((one) => (one.status === 'fulfilled' ? one.value.bookingId : one.reason.getStatus()));
}

test('completions of the same moment share a transaction, and each order is notified with its own values', async () => {
  const keys = await newOrders(30);
  // Nothing else may commit meanwhile, not even the purge at a full hour.
  await usher.queue.pause();
  await usher.running.app.get<Queue>(getQueueToken(PURGE_QUEUE), { strict: false }).pause();
  const before = commits;
  await completeAtOnce(keys.map((key, index) => [key, `BK-${index}`]));
  expect(commits - before).toBeLessThanOrEqual(2);
  await usher.queue.resume();
  for (const [index, key] of keys.entries()) {
    await usher.webhook(key, 'SUCCESS');
    const [arrival, ...others] = receiver.of(key);
    expect(JSON.parse(arrival!.rawBody.toString())).toMatchObject({ data: { key, bookingId: `BK-${index}` } });
    expect(others).toEqual([]);
  }
});

test('a completion that gets a problem does not fail the others', async () => {
  const [completed, repeated, ...pending] = await newOrders(6);
  await orders.complete(completed!, { ...COMPLETION, bookingId: 'earlier' });
  const { client: other } = await usher.clients.create('Without a Notify URL later', receiver.url);
  const { key: withoutUrl } = await orders.create(other, NEW_ORDER);
  await usher.dataSource.getRepository(Client).update({ id: other.id }, { notifyUrl: null });
  const answers = await completeAtOnce([
    [pending[0]!, 'a'],
    ['Unknown', 'b'],
    [pending[1]!, 'c'],
    [completed!, 'other'],
    [completed!, 'earlier'],
    [withoutUrl, 'd'],
    [repeated!, 'first'],
    [repeated!, 'first'],
    [repeated!, 'second'],
    [pending[2]!, 'e'],
  ]);
  // Requests that cannot share a transaction run beside each other, so any of the three can be the first.
  const ofRepeated = answers.splice(6, 3);
  expect([
    ['first', 'first', 409],
    [409, 409, 'second'],
  ]).toContainEqual(ofRepeated);
  expect(answers).toEqual(['a', 404, 'c', 409, 'earlier', 422, 'e']);
  expect(await statusOf(pending[3]!)).toBe('PENDING');
  expect(await usher.webhooks.find(withoutUrl)).toEqual([]);
  for (const key of [pending[0]!, pending[1]!, pending[2]!, completed!, repeated!]) {
    await usher.webhook(key, 'SUCCESS');
    expect(receiver.of(key)).toHaveLength(1);
  }
});
