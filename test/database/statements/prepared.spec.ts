import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../../src/database/data-source.js';
import { inTransaction } from '../../../src/database/sql.js';
import { runSql } from '../../../src/database/statements/statement.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  // One connection, so that the next transaction meets the session that lost the statement.
  usher = await TestUsher.start({ DATABASE_POOL: '1' });
});
afterAll(() => usher.stop());

test('a named statement is prepared, and runs unprepared from then on where a pooler lost it, also in a transaction', async () => {
  const { dataSource } = usher;
  const sum = (on: Parameters<typeof runSql>[0]) =>
    runSql(on, (parameter) => `SELECT 1 + ${parameter(1)} AS n`, 'usher_test_one');
  const inOne = () => inTransaction(dataSource, async (manager) => (await sum(manager)).rows[0]?.n);
  const prepared = (): Promise<unknown[]> =>
    inTransaction(dataSource, async (manager) => {
      await sum(manager);
      return manager.query(`SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT 1 +%'`);
    });
  if (!isPostgres(dataSource)) return expect(Number(await inOne())).toBe(2);
  expect(await prepared()).toHaveLength(1);
  // A pooler leads the next transaction to another session.
  await inTransaction(dataSource, (manager) => manager.query('DEALLOCATE ALL'));
  expect(Number(await inOne())).toBe(2);
  expect(await prepared()).toEqual([]);
  expect((await sum(dataSource)).rows).toEqual([{ n: 2 }]);
});

test.each(['alone', 'in a transaction'])(
  'a statement that was prepared before a migration still runs %s',
  async (place) => {
    // A server of its own, because one that has met this runs its statements unprepared.
    const own = await TestUsher.start({ DATABASE_POOL: '1' });
    const { dataSource } = own;
    const client = await own.client();
    const read = (on: Parameters<typeof runSql>[0]) =>
      runSql(on, (parameter) => `SELECT * FROM usher_client WHERE id = ${parameter(client.id)}`, 'usher_test_client');
    const run = () => (place === 'alone' ? read(dataSource) : inTransaction(dataSource, read));
    await run();
    await dataSource.query('ALTER TABLE usher_client ADD COLUMN added_later int');
    expect((await run()).rows).toMatchObject([{ id: client.id, added_later: null }]);
    await own.stop();
  },
);
