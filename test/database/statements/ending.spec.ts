import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { nullForOtherCount } from '../../../src/database/errors.js';
import { inTransaction } from '../../../src/database/sql.js';
import { endWithNext, insertOf, runTogether } from '../../../src/database/statements/statement.js';
import { UsedForm } from '../../../src/operators/operator.entity.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.shared();
});
afterAll(() => usher.dataSource.manager.delete(UsedForm, { expiresAt: 1 }));

const form = (digest: string): UsedForm => ({ digest, expiresAt: 1 });
const stored = async () => (await usher.dataSource.manager.findBy(UsedForm, { expiresAt: 1 })).map((row) => row.digest);

/** Inserts the rows of two statements; the first one must insert so many. */
const insertBoth = (first: string[], mustInsert: number) =>
  inTransaction(usher.dataSource, async (manager) => {
    endWithNext(manager, mustInsert, [insertOf(manager, UsedForm, [form(`${first.join()} last`)])]);
    return runTogether(manager, [insertOf(manager, UsedForm, first.map(form))]);
  }).catch(nullForOtherCount);

test('a transaction that ends with its next statements stores all, or nothing if the first of them inserts fewer rows than it must', async () => {
  expect(await insertBoth(['a'], 2)).toBeNull();
  expect(await stored()).toEqual([]);
  expect(await insertBoth(['b', 'c'], 2)).not.toBeNull();
  expect((await stored()).sort()).toEqual(['b', 'b,c last', 'c']);
});
