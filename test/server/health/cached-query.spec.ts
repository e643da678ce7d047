import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { CachedQueries, CachedQuery } from '../../../src/server/health/cached-query.js';
import { eventually } from '../../support/eventually.js';

const SECOND_MS = 1_000;

let aheadMs: number;
let clock: { mockRestore: () => void };
beforeEach(() => {
  const now = performance.now.bind(performance);
  aheadMs = 0;
  clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
});
afterEach(() => clock.mockRestore());

test('a result is used for some seconds; the next call after that waits for a new one', async () => {
  let count = 0;
  const query = new CachedQuery(() => Promise.resolve((count += 1)));
  expect(await query.get()).toBe(1);
  expect(await query.get()).toBe(1);
  aheadMs = 10 * SECOND_MS;
  expect(await query.get()).toBe(2);
});

test('a page gets the last result at once while the query runs again, but not one that is older than half a minute', async () => {
  let count = 0;
  const queries = new CachedQueries((by: number) => Promise.resolve((count += by)));
  expect(await queries.get(1)).toBe(1);
  aheadMs = 10 * SECOND_MS;
  expect(await queries.get(1)).toBe(1);
  await eventually('the query has run again', async () => (await queries.get(1)) === 2 || null);
  expect(count).toBe(2);
  aheadMs = 70 * SECOND_MS;
  expect(await queries.get(1)).toBe(3);
  queries.clear();
  expect(await queries.get(1)).toBe(4);
});

test('a page gets the last result while the query fails, and then none', async () => {
  const answers = [Promise.resolve('known')];
  const queries = new CachedQueries(() => answers.shift() ?? Promise.reject(new Error('the database is down')));
  expect(await queries.get('')).toBe('known');
  aheadMs = 10 * SECOND_MS;
  expect(await queries.get('')).toBe('known');
  aheadMs = 70 * SECOND_MS;
  expect(await queries.get('')).toBeNull();
});
