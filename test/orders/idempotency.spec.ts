import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { IdempotencyKey, MovieOrder } from '../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { BACKEND } from '../support/backend.js';
import { type Answer, NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let client: TestClient;
const ORDER = { ...NEW_ORDER, notifyUrl: 'http://127.0.0.1:9999/never-called' };

beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

async function create(of: TestClient, key: string, body: object = ORDER): Promise<Answer> {
  const authorization = `Bearer ${String((await of.token()).body.access_token)}`;
  return usher.request('POST', '/movie-orders', { authorization, 'idempotency-key': key }, body);
}

const expire = (key: string) =>
  usher.dataSource.getRepository(IdempotencyKey).decrement({ clientId: client.id, key }, 'createdAt', 86_400_000);

describe('an Idempotency-Key', () => {
  test('creates one order for a request sent twice, in any order of its fields', async () => {
    const first = await create(client, 'a');
    const again = await create(client, 'a', Object.fromEntries(Object.entries(ORDER).reverse()));
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
  });

  test('creates one order for twenty concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(client, 'b')));
    expect(new Set(answers.map(({ status, body }) => `${status} ${String(body.key)}`)).size).toBe(1);
  });

  test('has its order made by the next request if the process of the first one ended before', async () => {
    const first = await create(client, 'j');
    await usher.dataSource.manager.delete(MovieOrder, { id: orderIdOf(String(first.body.key)) ?? '' });
    expect((await create(client, 'j')).body).toEqual(first.body);
  });

  test('is refused for a different request', async () => {
    await create(client, 'c');
    const { status, body } = await create(client, 'c', { ...ORDER, totalAmount: 1 });
    expect(status).toBe(422);
    expect(body.detail).toContain('Idempotency-Key');
  });

  test('of one client does not affect another client', async () => {
    const mine = await create(client, 'd');
    const theirs = await create(await usher.client(), 'd');
    expect(theirs.status).toBe(201);
    expect(theirs.body.key).not.toBe(mine.body.key);
  });

  test('is valid for one day', async () => {
    const first = await create(client, 'e');
    await expire('e');
    const later = await create(client, 'e');
    expect(later.status).toBe(201);
    expect(later.body.key).not.toBe(first.body.key);
  });

  test('creates one order for twenty concurrent requests a day later', async () => {
    for (const key of ['g', 'h', 'i']) {
      await create(client, key);
      await expire(key);
      const answers = await Promise.all(Array.from({ length: 20 }, () => create(client, key)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      expect(new Set(answers.map(({ body }) => body.key)).size).toBe(1);
    }
  });

  test('that has expired is replaced once, also by a request that is late when it deletes the expired one', async () => {
    await create(client, 'k');
    await expire('k');
    const { manager } = usher.dataSource;
    const remove = manager.delete.bind(manager);
    let earlier: Answer | undefined;
    jest.spyOn(manager, 'delete').mockImplementationOnce(async (...given) => {
      earlier = await create(client, 'k');
      return remove(...given);
    });
    const late = await create(client, 'k');
    expect(earlier?.status).toBe(201);
    expect(late.body).toEqual(earlier?.body);
  });

  test('that was deleted while a request with it is answered creates one more order', async () => {
    const first = await create(client, 'l');
    const { manager } = usher.dataSource;
    const find = manager.findOne.bind(manager);
    jest.spyOn(manager, 'findOne').mockImplementationOnce(async (...given) => {
      await manager.delete(IdempotencyKey, { clientId: client.id, key: 'l' });
      return find(...given);
    });
    const next = await create(client, 'l');
    expect(next.status).toBe(201);
    expect(next.body.key).not.toBe(first.body.key);
    expect((await create(client, 'l')).body).toEqual(next.body);
  });

  test('finds an order that another transaction created after this one began', async () => {
    const orders = usher.running.app.get(OrdersService, { strict: false });
    const { client: of } = await usher.clients.create('An application', ORDER.notifyUrl);
    const create = async (): Promise<string> => {
      const { key } = await orders.create(of, ORDER, { idempotencyKey: 'f' });
      await usher.dataSource.manager.update(MovieOrder, { id: orderIdOf(key) ?? '' }, { status: 'COMPLETED' });
      return key;
    };
    const isPostgres = usher.dataSource.options.type === 'postgres';
    // The embedded database runs one transaction at a time.
    const early = BACKEND === 'embedded' && (await create());
    await usher.dataSource.transaction(isPostgres ? 'READ COMMITTED' : 'REPEATABLE READ', async (manager) => {
      await manager.query('SELECT COUNT(*) FROM usher_movie_order');
      const key = early || (await create());
      const again = await orders.create(of, ORDER, { idempotencyKey: 'f', manager });
      expect(again).toMatchObject({ key, status: 'COMPLETED' });
    });
  });

  test('with invalid characters gets a 400 that names the header', async () => {
    const { status, body } = await create(client, 'x'.repeat(256));
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ header: 'Idempotency-Key' }]);
  });
});
