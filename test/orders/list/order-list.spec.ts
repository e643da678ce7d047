import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ALL_ORDERS, COMPLETED_ORDERS, placeOrders } from '../../../src/orders/list/order-positions.js';
import { OrderList } from '../../../src/orders/list/order-list.js';
import { DeliveredReference, Webhook } from '../../../src/webhooks/webhook.entity.js';
import { application, ownerToken, signedIn, startWithIssuer } from '../../auth/authorize/support.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { statementsFromNowOn } from '../../support/statements.js';
import { COMPLETION, NEW_ORDER, ONE_ATTEMPT, type TestClient, type TestUsher } from '../../support/usher.js';
import { callOf, insertOrders, page, readAll } from './support.js';

const HOUR_MS = 3_600_000;
const NOW = Date.now();

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await startWithIssuer(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const newClient = (): Promise<TestClient> => usher.client(receiver.url);
const times = (count: number, from = NOW - HOUR_MS): number[] => Array.from({ length: count }, (_, at) => from + at);

describe('the list of orders', () => {
  test('has every order once, the oldest first, over pages', async () => {
    const client = await newClient();
    await insertOrders(usher, await newClient(), times(3));
    const keys = await insertOrders(usher, client, times(7));
    const first = await page(callOf(client), { limit: 3 });
    expect([first.data.map(({ key }) => key), first.hasMore]).toEqual([keys.slice(0, 3), true]);
    const rest = await readAll(callOf(client), { limit: 3, cursor: first.nextCursor! });
    expect(rest.keys).toEqual(keys.slice(3));
    expect(await page(callOf(client), { cursor: rest.cursor })).toEqual({
      data: [],
      nextCursor: null,
      hasMore: false,
      resumeCursor: rest.cursor,
    });
  });

  test('of a client without orders gives a cursor that finds the first one', async () => {
    const client = await newClient();
    const { resumeCursor, ...empty } = await page(callOf(client));
    expect(empty).toEqual({ data: [], nextCursor: null, hasMore: false });
    const key = await client.order();
    expect((await readAll(callOf(client), { cursor: resumeCursor })).keys).toEqual([key]);
  });

  test('shows the order as the other routes do, with the state of its notification', async () => {
    const client = await newClient();
    receiver.behaviour = (response, arrival, nth) =>
      answer(arrival.key === failing && nth === 1 ? 500 : 200)(response, arrival, nth);
    const pending = await client.order();
    const failing = await client.order();
    await client.complete(failing);
    const failed = await usher.webhook(failing, 'FAILED');
    const read = async () => new Map((await page(callOf(client))).data.map(({ key, ...order }) => [key, order]));
    expect((await read()).get(pending)?.delivery).toBeNull();
    const { key: _, ...view } = (await client.call('GET', `/movie-orders/${failing}`)).body;
    const ended = { attemptCount: 1, finishedAt: failed.finishedAt };
    expect((await read()).get(failing)).toEqual({
      ...view,
      delivery: { webhookId: failed.id, status: 'FAILED', ...ended },
    });
    const again = await client.call('POST', `/webhooks/${failed.id}/resend`);
    const { finishedAt } = await usher.webhook(failing, 'SUCCESS');
    const delivered = { webhookId: again.body.id, status: 'SUCCESS', attemptCount: 1, finishedAt };
    expect((await read()).get(failing)?.delivery).toEqual(delivered);
    await usher.dataSource.manager.delete(Webhook, { referenceId: failing });
    await usher.dataSource.manager.insert(DeliveredReference, {
      webhookId: String(again.body.id),
      referenceId: failing,
      eventType: 'NOTIFY_ORDER_COMPLETION',
      clientId: client.id,
      attempts: 1,
      finishedAt: Date.parse(String(finishedAt)),
    });
    expect((await read()).get(failing)?.delivery).toEqual(delivered);
  });

  test('has an order that is committed late behind those that a reader has seen', async () => {
    const client = await newClient();
    const seen = await insertOrders(usher, client, times(3));
    const { keys, cursor } = await readAll(callOf(client));
    expect(keys).toEqual(seen);
    const late = await insertOrders(usher, client, times(2, NOW - 2 * HOUR_MS));
    expect((await readAll(callOf(client), { cursor })).keys).toEqual(late);
    expect((await readAll(callOf(client))).keys).toEqual([...seen, ...late]);
  });

  test('gives each of several readers at once every order once, while orders come in', async () => {
    const client = await newClient();
    const keys = new Set(await insertOrders(usher, client, times(1_200)));
    const readers = Array.from({ length: 4 }, () => readAll(callOf(client), { limit: 100 }));
    for (let made = 0; made < 20; made += 1) keys.add(await client.order());
    for (const { keys: found, cursor } of await Promise.all(readers)) {
      const all = [...found, ...(await readAll(callOf(client), { cursor, limit: 100 })).keys];
      expect([all.length, new Set(all)]).toEqual([keys.size, keys]);
    }
  });

  test('with status=PENDING leaves completed orders out, over more of them than a page looks at', async () => {
    const client = await newClient();
    await insertOrders(usher, client, times(5_100));
    const keys = await insertOrders(usher, client, times(3, NOW), { status: 'PENDING' });
    const { keys: found, cursor } = await readAll(callOf(client), { status: 'PENDING' });
    expect(found).toEqual(keys);
    const key = await client.order();
    expect((await readAll(callOf(client), { cursor })).keys).toEqual([key]);
  });
});

describe('the list of completed orders', () => {
  const completed = { status: 'COMPLETED' };

  test('has each completion once, also of an order that was made before the cursor', async () => {
    const client = await newClient();
    const [first, second] = [await client.order(), await client.order()];
    await client.complete(second!);
    const { keys, cursor } = await readAll(callOf(client), completed);
    expect(keys).toEqual([second]);
    await client.complete(first!);
    expect((await readAll(callOf(client), { cursor })).keys).toEqual([first]);
    expect((await readAll(callOf(client), completed)).keys).toEqual([second, first]);
    expect((await readAll(callOf(client))).keys).toEqual([first, second]);
  });

  test('has a completion that is committed late behind those that a reader has seen', async () => {
    const client = await newClient();
    const seen = await insertOrders(usher, client, times(3));
    const { cursor } = await readAll(callOf(client), completed);
    const late = await insertOrders(usher, client, times(2, NOW - 2 * HOUR_MS));
    expect((await readAll(callOf(client), { cursor })).keys).toEqual(late);
    expect((await readAll(callOf(client), completed)).keys).toEqual([...seen, ...late]);
  });

  test('can begin before 1970, and its cursor continues it', async () => {
    const client = await newClient();
    const completedAfter = '0001-01-01T00:00:00Z';
    const keys = await insertOrders(usher, client, times(3));
    expect((await readAll(callOf(client), { completedAfter, limit: 2 })).keys).toEqual(keys);
  });

  test('begins at completedAfter, which its cursor keeps, also where positions are not in the order of time', async () => {
    const client = await newClient();
    const [before, after] = [times(3, NOW - 3 * HOUR_MS), times(4, NOW - HOUR_MS)];
    const keys = await insertOrders(usher, client, after);
    const completedAfter = new Date(NOW - HOUR_MS).toISOString();
    const first = await page(callOf(client), { completedAfter, limit: 2 });
    expect(first.data.map(({ key }) => key)).toEqual(keys.slice(0, 2));
    await insertOrders(usher, client, before);
    await readAll(callOf(client), completed);
    const late = await insertOrders(usher, client, [NOW - HOUR_MS / 2, NOW - 3 * HOUR_MS]);
    const { keys: rest } = await readAll(callOf(client), { cursor: first.resumeCursor });
    expect(rest).toEqual([...keys.slice(2), late[0]]);
    expect((await readAll(callOf(client), { completedAfter })).keys).toEqual([...keys, late[0]]);
  });
});

test("an owner's token lists the owner's orders and the client's own token all of them", async () => {
  const client = await application(usher, {}, receiver.url);
  const owners = [await signedIn(usher), await signedIn(usher)];
  const calls = await Promise.all(owners.map(async ({ browser }) => (await ownerToken(client, browser)).call));
  const [one, other] = calls as [(typeof calls)[0], (typeof calls)[0]];
  const order = async (call: typeof one): Promise<string> => {
    const { body } = await call('POST', '/movie-orders', NEW_ORDER);
    await call('POST', `/sandbox/movie-orders/${String(body.key)}/complete`, COMPLETION);
    return String(body.key);
  };
  const [ofOne, ofOther, own] = [await order(one), await order(other), await client.completedOrder()];
  for (const status of [{}, { status: 'COMPLETED' }] as Record<string, string>[]) {
    expect((await readAll(one, status)).keys).toEqual([ofOne]);
    expect((await readAll(other, status)).keys).toEqual([ofOther]);
    const all = await readAll(callOf(client), status);
    expect(all.keys.sort()).toEqual([ofOne, ofOther, own].sort());
    const { status: refused } = await one('GET', `/movie-orders?cursor=${all.cursor}`);
    expect(refused).toBe(400);
  }
});

test.each([
  ['status', 'status=DONE'],
  ['completedAfter', 'completedAfter=yesterday'],
  ['completedAfter', 'completedAfter=2026-02-30T00:00:00Z'],
  ['completedAfter', 'status=PENDING&completedAfter=2026-01-01T00:00:00Z'],
  ['limit', 'limit=0'],
  ['limit', 'limit=101'],
  ['limit', 'limit=many'],
  ['cursor', 'cursor=garbage'],
  ['cursor', 'cursor=all.0..00000000'],
  ['cursor', 'status=COMPLETED&cursor=OWN'],
  ['order', 'order=desc'],
])('400 names %s in ?%s', async (field, query) => {
  const client = await newClient();
  const { resumeCursor } = await page(callOf(client));
  const { status, body } = await client.call('GET', `/movie-orders?${query.replace('OWN', resumeCursor)}`);
  expect([status, body.errors]).toEqual([400, [{ parameter: field, message: expect.any(String) }]]);
});

test('reading costs one statement if all orders have positions and no notifications, and more orders cost no more', async () => {
  const client = await newClient();
  await insertOrders(usher, client, times(120), { status: 'PENDING' });
  await readAll(callOf(client));
  const { logger } = usher.dataSource;
  const statements = statementsFromNowOn(usher.dataSource);
  const list = usher.running.app.get(OrderList, { strict: false });
  const holder = { clientId: client.id, ownerId: null };
  await list.page(holder);
  const ofOrders = (): string[] => statements.filter((sql) => /usher_movie_order|usher_order_counter/.test(sql));
  expect(ofOrders()).toHaveLength(1);
  await list.page(holder, { cursor: (await list.page(holder, { limit: 100 })).nextCursor });
  expect(ofOrders()).toHaveLength(4);
  usher.dataSource.logger = logger;
});

test.each([
  ['all', ALL_ORDERS],
  ['completed', COMPLETED_ORDERS],
])('two readers at once give different positions to %s orders', async (_, list) => {
  const client = await newClient();
  await insertOrders(usher, client, times(900));
  const wanted = { holder: { clientId: client.id, ownerId: null }, list, since: 0 };
  const placed = await Promise.all([placeOrders(usher.dataSource, wanted), placeOrders(usher.dataSource, wanted)]);
  expect(placed.reduce((sum, count) => sum + count, 0)).toBe(900);
  const [row] = await usher.dataSource.query<[{ positions: string; orders: string }]>(
    `SELECT COUNT(DISTINCT ${list.position}) AS positions, COUNT(*) AS orders FROM usher_movie_order
     WHERE client_id = '${client.id}'`,
  );
  expect([Number(row.positions), Number(row.orders)]).toEqual([900, 900]);
});
