import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MovieOrder } from '../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { TestReceiver } from '../support/receiver.js';
import { COMPLETION, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;

beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('a completion whose order is locked waits alone; those of the same moment do not', async () => {
  const client = await usher.client(receiver.url);
  const orders = usher.running.app.get(OrdersService, { strict: false });
  const keys = await Promise.all(Array.from({ length: 4 }, () => client.order()));
  const [locked, ...free] = keys as [string, ...string[]];
  let late: Promise<unknown> | undefined;
  await usher.dataSource.transaction(async (manager) => {
    const id = orderIdOf(locked) ?? '';
    await manager.findOneOrFail(MovieOrder, { where: { id }, lock: { mode: 'pessimistic_write' } });
    late = orders.complete(locked, COMPLETION);
    await Promise.all(free.map((key) => orders.complete(key, COMPLETION)));
    await manager.update(MovieOrder, { id }, { payableAmount: 1 });
  });
  expect(await late).toMatchObject({ ...COMPLETION, payableAmount: 1 });
  for (const key of keys) await usher.webhook(key, 'SUCCESS');
  expect(JSON.parse(receiver.of(locked)[0]!.rawBody.toString())).toMatchObject({ data: { payableAmount: 1 } });
});
