import { expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { dataSourceOptions, openDataSource } from '../../src/database/data-source-options.js';
import { prepareSessions } from '../../src/database/sessions.js';
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

// Postgres has no such setting.
if (BACKEND === 'mariadb')
  test('a session has the character set of its statements, also where the server did not take it when it connected', async () => {
    const database = await OwnDatabase.create();
    const options = await dataSourceOptions(loadConfig(database.settings), null, 'service');
    const extra = { ...(options.extra as object), charset: 'latin1_swedish_ci' };
    const dataSource = await new DataSource({ ...options, extra } as DataSourceOptions).initialize();
    try {
      await prepareSessions(dataSource, { statementMs: 0, idleMs: 0 });
      const shown = () =>
        dataSource.query('SELECT @@character_set_client AS client, @@character_set_results AS results');
      const rows = (await Promise.all([1, 2, 3].map(shown))).flat() as unknown[];
      expect(rows).toEqual(Array(3).fill({ client: 'utf8mb4', results: 'utf8mb4' }));
    } finally {
      await dataSource.destroy();
      await database.drop();
    }
  });
