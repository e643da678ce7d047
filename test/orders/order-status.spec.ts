import { beforeAll, expect, test } from '@jest/globals';
import { effectOfCompletion, MovieOrder, ORDER_STATUSES, orderStatuses } from '../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { COMPLETION, TestUsher } from '../support/usher.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

test('a completion changes only a PENDING order', () => {
  expect(orderStatuses.filter((status) => effectOfCompletion(status) === 'change')).toEqual(['PENDING']);
});

test.each(orderStatuses)('the completion of an order that is %s has the effect that the table says', async (status) => {
  const client = await usher.client('https://cinema.example/notify');
  const key = await client.order();
  const orders = usher.dataSource.getRepository(MovieOrder);
  const { bookingId, transactionId, qrCode } = COMPLETION;
  await orders.update({ id: orderIdOf(key)! }, { status, bookingId, transactionId, qrCode });
  const completed = usher.running.app.get(OrdersService, { strict: false }).complete(key, COMPLETION);
  if (effectOfCompletion(status) === 'conflict') await expect(completed).rejects.toMatchObject({ status: 409 });
  else expect((await completed).status).toBe('COMPLETED');
  const after = await orders.findOneByOrFail({ id: orderIdOf(key)! });
  expect(after.status).toBe(ORDER_STATUSES[status].complete ?? status);
  const notified = await usher.webhooks.find(key);
  expect(notified).toHaveLength(effectOfCompletion(status) === 'change' ? 1 : 0);
});
