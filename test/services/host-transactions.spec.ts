import { expect, test } from '@jest/globals';
import { Client } from '../../src/index.js';
import { TransactionHost } from '../embedding/transaction-host.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

const GRANT = { grant_type: 'client_credentials' };

test.each(['typeorm-transactional', 'currentManager'] as const)(
  'while a transaction of %s hangs and until it rolls back, other callers work, and keep what they did',
  async (kind) => {
    const host = await TransactionHost.start(kind);
    const { client: locked } = await host.clients.create('Locked', host.receiver.url);
    const lock = { where: { id: locked.id }, lock: { mode: 'pessimistic_write' } } as const;
    const blocker = host.dataSource.createQueryRunner();
    await blocker.startTransaction();
    await blocker.manager.findOneOrFail(Client, lock);
    let begun = (): void => undefined;
    const hanging = new Promise<void>((done) => (begun = done));
    const caller = host.transaction(async (manager) => {
      const waiting = manager.findOneOrFail(Client, lock);
      // It is the first to need what all callers share: the clock of the database, and the batch of new tokens.
      const token = host.tokens.token(host.client, GRANT);
      begun();
      await Promise.all([waiting, token]);
      await host.orders.create(host.client, NEW_ORDER);
      throw new Error('rolled back');
    });
    await hanging;
    const others = Array.from({ length: 3 }, async () => {
      await host.tokens.token(host.client, GRANT);
      const { key } = await host.orders.create(host.client, NEW_ORDER);
      await host.orders.complete(key, COMPLETION);
      return key;
    });
    const keys = await Promise.all(others);
    await blocker.rollbackTransaction();
    await blocker.release();
    await expect(caller).rejects.toThrow('rolled back');
    for (const key of keys) {
      expect(await host.orders.get(host.client, key)).toMatchObject({ status: 'COMPLETED' });
      await host.receiver.waitFor(key);
    }
    expect(await host.webhooks.list({})).toHaveLength(keys.length);
    await host.stop();
  },
);
