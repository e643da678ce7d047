import { expect, test } from '@jest/globals';
import { TransactionHost } from '../embedding/transaction-host.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

test.each(['typeorm-transactional', 'currentManager'] as const)(
  'while a transaction of %s hangs and until it rolls back, other callers work, and keep what they did',
  async (kind) => {
    const host = await TransactionHost.start(kind);
    let begun = (): void => undefined;
    let release = (): void => undefined;
    const hanging = new Promise<void>((done) => (begun = done));
    const released = new Promise<void>((done) => (release = done));
    // It is the first to use what all share: the clock of the database, the batches and the remembered clients.
    const caller = host.transaction(async () => {
      await host.orders.create(host.client, NEW_ORDER);
      begun();
      await released;
      throw new Error('rolled back');
    });
    await hanging;
    const others = Array.from({ length: 3 }, async () => {
      const { key } = await host.orders.create(host.client, NEW_ORDER);
      await host.orders.complete(key, COMPLETION);
      return key;
    });
    const keys = await Promise.all(others);
    release();
    await expect(caller).rejects.toThrow('rolled back');
    for (const key of keys) {
      expect(await host.orders.get(host.client, key)).toMatchObject({ status: 'COMPLETED' });
      await host.receiver.waitFor(key);
    }
    expect(await host.webhooks.list({})).toHaveLength(keys.length);
    await host.stop();
  },
);
