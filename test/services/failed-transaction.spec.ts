import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { dialectOf } from '../../src/database/data-source.js';
import { inTransaction, nullForOtherCount } from '../../src/database/sql.js';
import { insertRows, runAlone, runStatement, type Statement } from '../../src/database/statements/statement.js';
import { UsedForm } from '../../src/operators/operator.entity.js';
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

test('a transaction that fails has given back its locks when its error arrives', async () => {
  const { dataSource } = usher;
  await insertRows(dataSource, UsedForm, [{ digest: 'locked', expiresAt: 1 }], dialectOf(dataSource).ifAbsent);
  for (let round = 0; round < 20; round += 1) expect(await freeAfterFailure(dataSource)).toBe(1);
});
