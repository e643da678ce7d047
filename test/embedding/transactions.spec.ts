import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RecordingWebhookModule, type RecordingWebhooks } from '../../src/testing/index.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { TransactionHost } from './transaction-host.js';

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
    const call = host.transaction(() => host.webhooks.notify(request, host.dataSource.manager as never));
    await expect(call).rejects.toThrow('pass the entity manager as { manager }');
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

test('RecordingWebhookModule finds the transaction of a caller too, and forgets what it rolled back', async () => {
  const host = await TransactionHost.start('currentManager', RecordingWebhookModule);
  try {
    const webhooks = host.webhooks as unknown as RecordingWebhooks;
    const failing = host.transaction(async () => {
      await webhooks.notify({ referenceId: 'Ticket-1', clientId: host.client.id, data: {} });
      throw new Error('the payment was refused');
    });
    await expect(failing).rejects.toThrow('the payment was refused');
    expect([webhooks.requests, await webhooks.find('Ticket-1')]).toEqual([[], []]);
    expect(webhooks.rolledBack.map(({ referenceId }) => referenceId)).toEqual(['Ticket-1']);
  } finally {
    await host.stop();
  }
});
