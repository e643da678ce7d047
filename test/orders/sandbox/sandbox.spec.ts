import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { MovieOrder } from '../../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../../src/orders/orders.service.js';
import { SANDBOX_QUEUE } from '../../../src/orders/sandbox/sandbox.module.js';
import { orderIdOf } from '../../../src/values/identifier.js';
import { eventually } from '../../support/eventually.js';
import { TestReceiver } from '../../support/receiver.js';
import { COMPLETION, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(() => void receiver.close());

test('the operator completes an order after a delay', async () => {
  const key = await client.order();
  const { status, body } = await client.complete(key, { ...COMPLETION, delay: '300ms' });
  expect([status, body.status]).toEqual([202, 'PENDING']);
  await receiver.waitFor(key);
  const { body: order } = await client.call('GET', `/movie-orders/${key}`);
  expect(order).toMatchObject({ status: 'COMPLETED', ...COMPLETION });
  const waited = Date.parse(String(order.lastUpdatedAt)) - Date.parse(String(order.createdAt));
  expect(waited).toBeGreaterThanOrEqual(300);
});

test('a delayed completion that fails once is tried again', async () => {
  const key = await client.order();
  const orders = usher.running.app.get(OrdersService, { strict: false });
  const complete = jest.spyOn(orders, 'complete').mockRejectedValueOnce(new Error('the database is away'));
  await client.complete(key, { ...COMPLETION, delay: '1ms' });
  await receiver.waitFor(key);
  expect(complete).toHaveBeenCalledTimes(2);
  complete.mockRestore();
});

test('a completed order ignores the delay: equal values get 200, other values get 409', async () => {
  const key = await client.completedOrder();
  expect((await client.complete(key, { ...COMPLETION, delay: '10m' })).status).toBe(200);
  expect((await client.complete(key, { ...COMPLETION, bookingId: 'BK-2', delay: '10m' })).status).toBe(409);
});

test.each([{}, { delay: '1ms' }])('an order that is completed twice %j is notified once', async (how) => {
  const key = await client.order();
  await client.complete(key, { ...COMPLETION, ...how, twice: true });
  await usher.webhook(key, 'SUCCESS');
  expect(await usher.webhooks.find(key)).toHaveLength(1);
  expect(receiver.of(key)).toHaveLength(1);
});

test('an order has one delayed completion, however often it is requested', async () => {
  const key = await client.order();
  const later = { ...COMPLETION, delay: '10m' };
  for (let round = 0; round < 10; round += 1) {
    const answers = await Promise.all(Array.from({ length: 5 }, () => client.complete(key, later)));
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(202));
  }
  const queue = usher.running.app.get<Queue>(getQueueToken(SANDBOX_QUEUE), { strict: false });
  expect((await queue.getDelayed()).filter(({ data }) => (data as { key: string }).key === key)).toHaveLength(1);
  const other = await client.complete(key, { ...later, bookingId: 'BK-2' });
  expect([other.status, other.body.detail]).toEqual([409, expect.stringContaining('with other values')]);
  expect((await client.complete(key)).status).toBe(200);
});

test('a delayed completion of an order that is gone ends without a trace', async () => {
  const key = await client.order();
  await client.complete(key, { ...COMPLETION, delay: '50ms' });
  await usher.dataSource.manager.delete(MovieOrder, { id: orderIdOf(key)! });
  const queue = usher.running.app.get<Queue>(getQueueToken(SANDBOX_QUEUE), { strict: false });
  await eventually('the job is gone', async () => !(await queue.getJob(orderIdOf(key)!)));
  expect(await queue.getFailedCount()).toBe(0);
});

test.each([{ delay: 'soon' }, { delay: '11m' }, { delay: 30 }, { twice: 'yes' }])(
  '%j is a fault of that field',
  async (how) => {
    const { status, body } = await client.complete(await client.order(), { ...COMPLETION, ...how });
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ pointer: `#/${Object.keys(how)[0]}` }]);
  },
);

test('the answer for an order of another client is that for an unknown order', async () => {
  const key = await client.order();
  expect((await (await usher.client()).complete(key, { ...COMPLETION, delay: '1ms' })).status).toBe(404);
});
