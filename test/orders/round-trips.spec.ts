import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DatabaseClock } from '../../src/database/database-clock.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { IdempotencyKey, MovieOrder } from '../../src/orders/movie-order.entity.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { statementsFromNowOn } from '../support/statements.js';
import { type Answer, NEW_ORDER, TestUsher } from '../support/usher.js';

const ORDER = { ...NEW_ORDER, notifyUrl: 'http://127.0.0.1:9999/never-called' };

let usher: TestUsher;
let statements: string[];

beforeAll(async () => {
  // A worker would make statements of its own.
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  statements = statementsFromNowOn(usher.dataSource);
});
afterAll(() => usher.stop());

const post = (authorization: string, key?: string): Promise<Answer> =>
  usher.request(
    'POST',
    '/movie-orders',
    { authorization, ...(key !== undefined && { 'idempotency-key': key }) },
    ORDER,
  );

async function bearer(): Promise<string> {
  return `Bearer ${String((await (await usher.client()).token()).body.access_token)}`;
}

test.each([
  ['three', 3, undefined],
  ['four with an Idempotency-Key', 4, 'one'],
])('an order takes %s round trips to the database in a process that remembers nothing', async (_, most, key) => {
  const authorization = await bearer();
  usher.running.app.get(DatabaseClock, { strict: false })['reading'] = { databaseMs: 0, at: -Infinity };
  statements.length = 0;
  expect((await post(authorization, key)).status).toBe(201);
  expect(statements.length).toBeLessThanOrEqual(most);
});

test('a process that ends between the key and the order leaves nothing behind: the repeated request creates the order', async () => {
  const authorization = await bearer();
  const first = await post(authorization, 'two');
  const id = orderIdOf(String(first.body.key)) ?? '';
  await usher.dataSource.manager.delete(MovieOrder, { id });
  expect(await usher.dataSource.manager.countBy(IdempotencyKey, { orderId: id })).toBe(1);
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(authorization, 'two')));
  for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 201, body: first.body });
});

test('a completion in the transaction of an application adds at most four statements to it', async () => {
  const key = await (await usher.client()).order({ notifyUrl: ORDER.notifyUrl });
  const orders = usher.running.app.get(OrdersService, { strict: false });
  await usher.dataSource.transaction(async (manager) => {
    statements.length = 0;
    await orders.complete(key, { bookingId: 'BK-1', transactionId: 'TX-1' }, { manager });
  });
  const own = statements
    .flatMap((text) => text.split('; '))
    .filter((text) => !/^(START TRANSACTION|COMMIT)/.test(text));
  expect(own.length).toBeGreaterThan(2);
  expect(own.length).toBeLessThanOrEqual(4);
});
