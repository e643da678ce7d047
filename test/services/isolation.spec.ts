import { expect, test } from '@jest/globals';
import { openDataSource } from '../../src/database/data-source-options.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { BACKEND } from '../support/backend.js';
import { OwnDatabase } from '../support/own-database.js';

const SHOWN =
  BACKEND === 'mariadb'
    ? 'SELECT @@tx_isolation AS level, @@sql_mode AS mode, @@sql_safe_updates AS safe'
    : `SELECT current_setting('transaction_isolation') AS level`;
const EXPECTED =
  BACKEND === 'mariadb'
    ? { level: 'READ-COMMITTED', mode: 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', safe: '0' }
    : { level: 'read committed' };

test('a session has its own isolation level and SQL mode, whatever the defaults of the server are', async () => {
  const database = await OwnDatabase.create();
  try {
    // The defaults of MariaDB are REPEATABLE READ and another mode.
    if (BACKEND !== 'mariadb')
      await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`);
    const dataSource = await openDataSource(loadConfig(database.settings), null, 'service', []);
    try {
      // Several sessions at the same time: the first one, and others.
      const rows = await Promise.all([1, 2, 3].map(() => dataSource.query<object[]>(SHOWN)));
      for (const [row] of rows) expect(row).toEqual(EXPECTED);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await database.drop();
  }
});
