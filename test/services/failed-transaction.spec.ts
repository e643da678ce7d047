import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { openDataSource } from '../../src/database/data-source-options.js';
import { dialectOf } from '../../src/database/data-source.js';
import { isDatabaseDown, nullForOtherCount } from '../../src/database/errors.js';
import { inTransaction } from '../../src/database/sql.js';
import { insertRows, runAlone, runStatement, type Statement } from '../../src/database/statements/statement.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { UsedForm } from '../../src/operators/operator.entity.js';
import { BACKEND } from '../support/backend.js';
import { OwnDatabase } from '../support/own-database.js';
import { TestUsher } from '../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.shared();
});
afterAll(() => usher.dataSource.manager.delete(UsedForm, { digest: 'locked' }));

const lock: Statement = {
  write: (parameter) =>
    `SELECT digest FROM usher_used_form WHERE digest = ${parameter('locked')} FOR UPDATE SKIP LOCKED`,
};

/** One connection is in use before the failure, and then looks for the row that the other one has locked. */
const freeAfterFailure = (dataSource: DataSource) =>
  inTransaction(dataSource, async (manager) => {
    await manager.query('SELECT 1');
    const failing = runAlone(dataSource, [{ ...lock, rows: { found: 2 } }]);
    expect(await failing.catch(nullForOtherCount)).toBeNull();
    return (await runStatement(manager, lock)).rows.length;
  });

// On Postgres the locks are released at about the same time as the error arrives, so it needs many rounds.
const ROUNDS = 500;

test('a transaction that fails has given back its locks when its error arrives', async () => {
  const { dataSource } = usher;
  await insertRows(dataSource, UsedForm, [{ digest: 'locked', expiresAt: 1 }], dialectOf(dataSource).ifAbsent);
  for (let round = 0; round < ROUNDS; round += 1) expect(await freeAfterFailure(dataSource)).toBe(1);
});

test('a connection that is cut during a transaction, also the one that was opened first, ends no process', async () => {
  const database = await OwnDatabase.create();
  try {
    const dataSource = await openDataSource(loadConfig(database.settings), null, 'service', []);
    try {
      const wait = BACKEND === 'mariadb' ? 'SELECT SLEEP(20)' : 'SELECT pg_sleep(20)';
      const waiting = runAlone(dataSource, [{ write: () => wait, rows: { found: 1 } }]);
      const error = waiting.then(
        () => null,
        (reason: unknown) => reason,
      );
      await database.cutConnections();
      expect(isDatabaseDown(await error)).toBe(true);
      expect(await runAlone(dataSource, [{ write: () => 'SELECT 1 AS one', rows: { found: 1 } }])).toHaveLength(1);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await database.drop();
  }
});
