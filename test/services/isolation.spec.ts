import { expect, test } from '@jest/globals';
import { openDataSource } from '../../src/database/data-source-options.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { BACKEND } from '../support/backend.js';
import { OwnDatabase } from '../support/own-database.js';

test('a statement without a transaction around it runs at READ COMMITTED, whatever the default of the database is', async () => {
  const database = await OwnDatabase.create();
  // The default of MariaDB is REPEATABLE READ.
  const shown = BACKEND === 'mariadb' ? 'SELECT @@tx_isolation AS level' : 'SHOW transaction_isolation';
  try {
    if (BACKEND !== 'mariadb')
      await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`);
    const dataSource = await openDataSource(loadConfig(database.settings), null, 'service', []);
    try {
      // Several sessions at the same time: the first one, and others.
      const rows = await Promise.all([1, 2, 3].map(() => dataSource.query<object[]>(shown)));
      for (const [row] of rows)
        expect(
          Object.values(row ?? {})
            .join()
            .replace('-', ' ')
            .toLowerCase(),
        ).toBe('read committed');
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await database.drop();
  }
});
