import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../../src/database/data-source.js';
import { runAlone, runStatement, type Statement } from '../../../src/database/statements/statement.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  // One connection, so that the next statement meets what a failed one has prepared.
  usher = await TestUsher.start({ DATABASE_POOL: '1' });
});
afterAll(() => usher.stop());

const named = (name: string, text: string): Statement => ({ name: `usher_test_${name}`, write: () => text });
const one = named('one', 'SELECT 1 AS n');
const two = named('two', 'SELECT 2 AS n');
const broken = named('broken', 'SELECT missing_function_of_usher() AS n');

test('statements that are sent together have a result each, also where two are the same', async () => {
  const results = await runAlone(usher.dataSource, [one, two, one]);
  expect(results.map(({ rows }) => Number(rows[0]?.n))).toEqual([1, 2, 1]);
});

test('after one that fails those behind it do not run, and all can be sent again on the same connection', async () => {
  const { dataSource } = usher;
  const [three, four] = [named('three', 'SELECT 3 AS n'), named('four', 'SELECT 4 AS n')];
  await runStatement(dataSource, one);
  for (const statements of [
    [broken, three],
    [broken, three],
    [three, broken],
    [three, broken],
  ])
    await expect(runAlone(dataSource, statements)).rejects.toThrow(/missing_function_of_usher/);
  expect((await runStatement(dataSource, three)).rows).toEqual([{ n: 3 }]);
  expect(await runAlone(dataSource, [three, four])).toHaveLength(2);
  if (!isPostgres(dataSource)) return;
  // The pool closes a connection whose transaction is open. Postgres would refuse a statement that it has already, and none
  // would be prepared any more.
  const { rows } = await runStatement(dataSource, {
    write: () =>
      `SELECT statement FROM pg_prepared_statements WHERE statement ~ '^SELECT [14] AS n$' ORDER BY statement`,
  });
  expect(rows.map(({ statement }) => statement)).toEqual(['SELECT 1 AS n', 'SELECT 4 AS n']);
});
