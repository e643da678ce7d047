import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type EntityManager } from 'typeorm';
import { BACKEND } from '../../support/backend.js';
import { TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let made = 0;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(() => void receiver.close());

const newReference = (): string => `Order-${(made += 1)}`;
const request = (referenceId: string) => ({ referenceId, clientId: client.id, data: { key: referenceId } });
const notify = async (referenceId: string, manager?: EntityManager) =>
  (await usher.webhooks.notify(request(referenceId), { manager })).webhook;

/** The embedded database runs one transaction at a time. */
const ONE_TRANSACTION_AT_A_TIME = BACKEND === 'embedded';

async function expectOthersToPass(reference: string): Promise<void> {
  expect(await usher.webhooks.find(reference)).toEqual([]);
  const other = newReference();
  await notify(other);
  await receiver.waitFor(other);
  expect(receiver.of(reference)).toHaveLength(0);
}

describe('an order of another system', () => {
  test('is notified with the data given', async () => {
    const reference = newReference();
    await usher.webhooks.notify({ ...request(reference), data: { key: reference, seats: ['A1'] } });
    const [arrival] = await receiver.waitFor(reference);
    expect(arrival!.rawBody.toString()).toBe(
      `{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"${reference}","seats":["A1"]}}`,
    );
  });

  test('is notified once after repeated calls', async () => {
    const reference = newReference();
    const first = await notify(reference);
    await usher.webhook(reference, 'SUCCESS');
    expect((await notify(reference)).id).toBe(first.id);
    expect(receiver.of(reference)).toHaveLength(1);
  });

  test('is notified once after twenty concurrent calls', async () => {
    const reference = newReference();
    const answers = await Promise.all(Array.from({ length: 20 }, () => notify(reference)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    await usher.webhook(reference, 'SUCCESS');
    expect(await usher.webhooks.find(reference)).toHaveLength(1);
    expect(receiver.of(reference)).toHaveLength(1);
  });

  test('is a different order if the reference differs only in upper and lower case', async () => {
    const reference = newReference();
    await Promise.all([notify(reference), notify(reference.toLowerCase())]);
    await usher.webhook(reference, 'SUCCESS');
    await usher.webhook(reference.toLowerCase(), 'SUCCESS');
    expect(receiver.of(reference)).toHaveLength(1);
    expect(receiver.of(reference.toLowerCase())).toHaveLength(1);
  });
});

describe('notify in the transaction of the caller', () => {
  test('sends nothing before the commit and sends after it', async () => {
    const reference = newReference();
    let lastMomentInside = Infinity;
    await usher.dataSource.transaction(async (manager) => {
      await notify(reference, manager);
      if (!ONE_TRANSACTION_AT_A_TIME) await expectOthersToPass(reference);
      lastMomentInside = Date.now();
    });
    await usher.webhook(reference, 'SUCCESS');
    expect(receiver.of(reference)[0]!.at).toBeGreaterThanOrEqual(lastMomentInside);
  });

  test('records nothing if the transaction is rolled back', async () => {
    const reference = newReference();
    const failing = usher.dataSource.transaction(async (manager) => {
      await notify(reference, manager);
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await usher.webhooks.find(reference)).toEqual([]);
    const next = newReference();
    await notify(next);
    await receiver.waitFor(next);
    expect(receiver.of(reference)).toHaveLength(0);
  });

  test('sends after the outer of two nested transactions commits', async () => {
    const reference = newReference();
    await usher.dataSource.transaction((outer) => outer.transaction((inner) => notify(reference, inner)));
    await usher.webhook(reference, 'SUCCESS');
    expect(receiver.of(reference)).toHaveLength(1);
  });

  test('finds a webhook that another transaction committed after this one began', async () => {
    const reference = newReference();
    const isolation = usher.dataSource.options.type === 'postgres' ? 'READ COMMITTED' : 'REPEATABLE READ';
    const early = ONE_TRANSACTION_AT_A_TIME && (await notify(reference));
    await usher.dataSource.transaction(isolation, async (manager) => {
      await manager.query('SELECT COUNT(*) FROM usher_webhook');
      const { id } = early || (await notify(reference));
      expect((await notify(reference, manager)).id).toBe(id);
    });
  });

  test('is refused with another data source and without an open transaction', async () => {
    const other = new DataSource({ ...usher.dataSource.options, entities: [] });
    const reference = newReference();
    await expect(notify(reference, other.manager)).rejects.toThrow('belongs to another data source');
    await expect(notify(reference, usher.dataSource.manager)).rejects.toThrow('has no open transaction');
    expect(await usher.webhooks.find(reference)).toEqual([]);
  });
});

describe('a request that cannot be delivered is refused and nothing is recorded:', () => {
  test.each([
    ['an invalid Notify URL', { notifyUrl: 'nowhere' }, 400, 'notifyUrl'],
    ['a Notify URL with a password', { notifyUrl: 'http://me:secret@127.0.0.1:3000/' }, 400, 'notifyUrl'],
    ['an empty reference', { referenceId: '' }, 400, 'referenceId'],
    ['a reference that is not printable ASCII', { referenceId: 'Bücher' }, 400, 'referenceId'],
    ['an unknown client', { clientId: 'nobody', notifyUrl: 'http://127.0.0.1:3000/' }, 404, 'nobody'],
    ['data of more than 64 KiB', { data: { text: 'x'.repeat(66_000) } }, 422, '65535'],
  ])('%s', async (_name, change, status, said) => {
    const asked = { ...request(newReference()), ...change };
    await expect(usher.webhooks.notify(asked)).rejects.toMatchObject({
      status,
      detail: expect.stringContaining(said),
    });
    expect(await usher.webhooks.find(asked.referenceId)).toEqual([]);
  });

  test('no Notify URL in the request and none registered for the client', async () => {
    const { id } = await usher.client();
    await expect(usher.webhooks.notify({ ...request('R'), clientId: id })).rejects.toMatchObject({ status: 422 });
  });
});
