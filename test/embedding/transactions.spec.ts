import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EntityManager } from 'typeorm';
import { Client } from '../../src/clients/client.entity.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { OnOrderCompleted, type OrderCompleted, WebhookModule } from '../../src/index.js';
import { RecordingWebhookModule, type RecordingWebhooks } from '../../src/testing/index.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { TransactionHost } from './transaction-host.js';

/** The application's own listener. It refuses one booking. */
@Injectable()
class Seats {
  static readonly TAKEN = 'BK-TAKEN';

  @OnOrderCompleted()
  async check({ order, manager }: OrderCompleted): Promise<void> {
    await manager.query('SELECT 1');
    if (order.bookingId === Seats.TAKEN) throw new Error('no seat is left');
  }
}

describe.each(['typeorm-transactional', 'currentManager'] as const)('a caller in a transaction of %s', (kind) => {
  let host: TransactionHost;
  beforeAll(async () => void (host = await TransactionHost.start(kind)));
  afterAll(() => host.stop());

  const notified = () =>
    host.webhooks.notify({ referenceId: 'Ticket-1', clientId: host.client.id, data: { seats: 2 } });

  test('that rolls back has neither created, nor completed, nor notified anything', async () => {
    const kept = await host.orders.create(host.client, NEW_ORDER);
    const keys: string[] = [];
    const failing = host.transaction(async () => {
      keys.push((await host.orders.create(host.client, NEW_ORDER)).key);
      await host.orders.complete(kept.key, COMPLETION);
      await notified();
      throw new Error('the payment was refused');
    });
    await expect(failing).rejects.toThrow('the payment was refused');
    await expect(host.orders.get(host.client, keys[0]!)).rejects.toMatchObject({ status: 404 });
    expect(await host.orders.get(host.client, kept.key)).toMatchObject({ status: 'PENDING' });
    expect(await host.webhooks.list({})).toEqual([]);
  });

  test('that passes the entity manager without its name is told so', async () => {
    const request = { referenceId: 'Ticket-2', clientId: host.client.id, data: {} };
    const manager = host.dataSource.manager as never;
    const { key } = await host.orders.create(host.client, NEW_ORDER);
    for (const call of [
      () => host.webhooks.notify(request, manager),
      () => host.orders.create(host.client, NEW_ORDER, manager),
      () => host.orders.complete(key, COMPLETION, manager),
    ])
      await expect(call()).rejects.toThrow('pass the entity manager as { manager }');
  });

  test.each([
    ['rolls back', 'alone'],
    ['commits', 'alone'],
    ['rolls back', 'within another'],
    ['commits', 'within another'],
  ])('that %s %s while calls still run ends after they have', async (end, place) => {
    const [{ key }, referenceId] = [
      await host.orders.create(host.client, NEW_ORDER),
      `Ticket-${end.length}-${place.length}`,
    ];
    const calls: Promise<unknown>[] = [];
    const failing = async (manager: EntityManager) => {
      await manager.query('SELECT 1');
      const completed = host.orders.complete(key, COMPLETION, { manager });
      const notify = () => host.webhooks.notify({ referenceId, clientId: host.client.id, data: {} }, { manager });
      calls.push(completed, completed.then(notify));
      if (end === 'rolls back') await Promise.all([...calls, Promise.reject(new Error('the payment was refused'))]);
    };
    const within = (manager: EntityManager) => manager.transaction(failing).catch(() => undefined);
    const ended = host.transaction(place === 'alone' ? failing : within);
    await Promise.allSettled([ended, ...calls]);
    const notified = await Promise.all([key, referenceId].map((reference) => host.webhooks.find(reference)));
    expect([(await host.orders.get(host.client, key)).status, ...notified.map(({ length }) => length)]).toEqual(
      end === 'commits' ? ['COMPLETED', 1, 1] : ['PENDING', 0, 0],
    );
  });

  test('that has just set the Notify URL creates an order of the client as it was', async () => {
    const { client } = await host.clients.create('Partner without a Notify URL', null);
    const { key } = await host.transaction(async (manager) => {
      await manager.update(Client, { id: client.id }, { notifyUrl: host.receiver.url });
      return host.orders.create(client, NEW_ORDER);
    });
    expect(await host.orders.get(client, key)).toMatchObject({ status: 'PENDING' });
  });

  test('that commits has its order notified; one that has ended is not joined', async () => {
    const [key, later] = await host.transaction(async () => {
      const order = await host.orders.create(host.client, NEW_ORDER);
      await host.orders.complete(order.key, COMPLETION);
      let end = (): void => undefined;
      const ended = new Promise<void>((done) => (end = done));
      return [order.key, { end, create: ended.then(() => host.orders.create(host.client, NEW_ORDER)) }] as const;
    });
    await host.receiver.waitFor(key);
    later.end();
    const created = await later.create;
    expect(await host.orders.get(host.client, created.key)).toMatchObject({ status: 'PENDING' });
  });
});

test.each(['typeorm-transactional', 'currentManager'] as const)(
  'a listener refuses a completion in a transaction of %s, and the caller commits the rest: nothing is notified',
  async (kind) => {
    const host = await TransactionHost.start(kind, WebhookModule, [Seats]);
    const { key } = await host.orders.create(host.client, NEW_ORDER);
    await host.transaction(async () => {
      const refused = host.orders.complete(key, { bookingId: Seats.TAKEN, transactionId: 'TX-1' });
      await expect(refused).rejects.toThrow('no seat is left');
    });
    expect(await host.orders.get(host.client, key)).toMatchObject({ status: 'PENDING' });
    expect(await host.webhooks.list({})).toEqual([]);
    await host.transaction(() => host.orders.complete(key, COMPLETION));
    const [arrival] = await host.receiver.waitFor(key);
    expect(JSON.parse(String(arrival?.rawBody))).toMatchObject({ data: { bookingId: COMPLETION.bookingId } });
    await host.stop();
  },
);

test('completions and notifications of one transaction at the same time: only what a listener refuses is missing', async () => {
  const host = await TransactionHost.start('currentManager', WebhookModule, [Seats]);
  const { client, orders, webhooks } = host;
  const made = await Promise.all([1, 2, 3, 4].map(() => orders.create(client, NEW_ORDER)));
  const [refused, ...others] = made.map(({ key }) => key) as [string, string, string, string];
  const results = await host.transaction(() =>
    Promise.allSettled([
      orders.complete(refused, { bookingId: Seats.TAKEN, transactionId: 'TX-1' }),
      ...others.map((key) => orders.complete(key, COMPLETION)),
      setImmediate().then(() => webhooks.notify({ referenceId: 'Ticket-2', clientId: client.id, data: {} })),
    ]),
  );
  expect(results.map(({ status }) => status)).toEqual(['rejected', ...Array.from({ length: 4 }, () => 'fulfilled')]);
  expect(await orders.get(client, refused)).toMatchObject({ status: 'PENDING' });
  const notified = (await webhooks.list({})).map(({ referenceId }) => referenceId);
  expect(new Set(notified)).toEqual(new Set([...others, 'Ticket-2']));
  for (const key of others) expect(await orders.get(client, key)).toMatchObject({ status: 'COMPLETED' });
  await host.stop();
});

test('an order that is completed while the application closes is notified', async () => {
  const host = await TransactionHost.start('currentManager');
  const { key } = await host.orders.create(host.client, NEW_ORDER);
  await host.close();
  await host.transaction(() => host.orders.complete(key, COMPLETION));
  expect(await host.dataSource.manager.countBy(Webhook, { referenceId: key })).toBe(1);
  await host.stop();
});

test('RecordingWebhookModule finds the transaction of a caller too, and forgets what it rolled back or what a listener refused', async () => {
  const host = await TransactionHost.start('currentManager', RecordingWebhookModule, [Seats]);
  try {
    const webhooks = host.webhooks as unknown as RecordingWebhooks;
    const failing = host.transaction(async () => {
      await webhooks.notify({ referenceId: 'Ticket-1', clientId: host.client.id, data: {} });
      throw new Error('the payment was refused');
    });
    await expect(failing).rejects.toThrow('the payment was refused');
    expect([webhooks.requests, await webhooks.find('Ticket-1')]).toEqual([[], []]);
    const names = (requests: { referenceId: string }[]) => requests.map(({ referenceId }) => referenceId);
    expect(names(webhooks.rolledBack)).toEqual(['Ticket-1']);

    const nested = (outer: EntityManager, referenceId: string, error?: Error) =>
      outer.transaction(async (manager) => {
        await webhooks.notify({ referenceId, clientId: host.client.id, data: {} }, { manager });
        if (error) throw error;
      });
    await host.transaction(async (manager) => {
      await nested(manager, 'Kept');
      await expect(nested(manager, 'Undone', new Error('no seat is left'))).rejects.toThrow('no seat is left');
    });
    const { key } = await host.orders.create(host.client, NEW_ORDER);
    await host.transaction(async () => {
      const refused = host.orders.complete(key, { bookingId: Seats.TAKEN, transactionId: 'TX-1' });
      await expect(refused).rejects.toThrow('no seat is left');
    });
    expect([names(webhooks.requests), names(webhooks.rolledBack)]).toEqual([['Kept'], ['Ticket-1', 'Undone']]);
    await host.orders.complete(key, COMPLETION);
    expect(names(webhooks.requests)).toEqual(['Kept', key]);
  } finally {
    await host.stop();
  }
});
