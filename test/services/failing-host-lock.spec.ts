import { expect, test } from '@jest/globals';
import { inTransaction } from '../../src/database/sql.js';
import { FailingHost } from '../../src/webhooks/contact/failing-host.entity.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

test('a claim does not wait for a transaction that holds the row of a failing host', async () => {
  const [usher, receiver] = [await TestUsher.start(), await TestReceiver.start()];
  try {
    const client = await usher.client(receiver.url);
    const row = { clientId: client.id, host: 'else.example' };
    const now = Date.now();
    const moments = { failingSince: now, lastFailedAt: now, lastError: 'connection refused' };
    await usher.dataSource.manager.insert(FailingHost, { ...row, ...moments });
    await inTransaction(usher.dataSource, async (manager) => {
      await manager.findOne(FailingHost, { where: row, lock: { mode: 'pessimistic_write' } });
      const key = await client.completedOrder();
      expect(await receiver.waitFor(key)).toHaveLength(1);
    });
  } finally {
    await usher.stop();
    receiver.close();
  }
});
