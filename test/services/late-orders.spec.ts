import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ALL_ORDERS, placeOrders } from '../../src/orders/list/order-positions.js';
import { MovieOrder, OrderCounter } from '../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { callOf, readAll } from '../orders/list/support.js';
import { eventually } from '../support/eventually.js';
import { TestReceiver } from '../support/receiver.js';
import { statementsFromNowOn } from '../support/statements.js';
import { COMPLETION, NEW_ORDER, TestUsher } from '../support/usher.js';

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

/** A transaction of an application, which stays open until `commit` is called. */
async function openTransaction() {
  const runner = usher.dataSource.createQueryRunner();
  await runner.startTransaction();
  const commit = async (): Promise<void> => {
    await runner.commitTransaction();
    await runner.release();
  };
  return { manager: runner.manager, commit };
}

test('an order whose transaction is open while others read appears once, after it is committed', async () => {
  const client = await usher.client(receiver.url);
  const orders = usher.running.app.get(OrdersService, { strict: false });
  const { manager, commit } = await openTransaction();
  const late = await orders.create(await usher.clients.get(client.id), NEW_ORDER, { manager });
  const early = await client.order();
  const { keys, cursor } = await readAll(callOf(client));
  expect(keys).toEqual([early]);
  await commit();
  expect((await readAll(callOf(client), { cursor })).keys).toEqual([late.key]);
  expect((await readAll(callOf(client))).keys).toEqual([early, late.key]);
});

test('a completion whose transaction is open while others read appears once, and makes no reader wait', async () => {
  const client = await usher.client(receiver.url);
  const orders = usher.running.app.get(OrdersService, { strict: false });
  const [late, early] = [await client.order(), await client.order()];
  const { manager, commit } = await openTransaction();
  await orders.complete(late, COMPLETION, { manager });
  await client.complete(early);
  const completed = await readAll(callOf(client), { status: 'COMPLETED' });
  const all = await readAll(callOf(client));
  expect([completed.keys, all.keys]).toEqual([[early], [early]]);
  await commit();
  for (const { cursor } of [completed, all]) expect((await readAll(callOf(client), { cursor })).keys).toEqual([late]);
});

test('a reader that comes while another one gives positions continues behind them', async () => {
  const client = await usher.client(receiver.url);
  const { dataSource } = usher;
  const wanted = { holder: { clientId: client.id, ownerId: null }, list: ALL_ORDERS, since: 0 };
  await client.order();
  await placeOrders(dataSource, wanted);
  const id = orderIdOf(await client.order()) ?? '';
  const { manager, commit } = await openTransaction();
  const last = 2 ** 52;
  await manager.update(OrderCounter, { clientId: client.id }, { listPosition: last });
  const statements = statementsFromNowOn(dataSource);
  const placing = placeOrders(dataSource, wanted);
  await eventually('it asks for the last position', () =>
    statements.some((sql) => sql.includes('usher_order_counter')),
  );
  await commit();
  expect(await placing).toBe(1);
  expect(await dataSource.manager.findOneByOrFail(MovieOrder, { id })).toMatchObject({ listPosition: last + 1 });
});
