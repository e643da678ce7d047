import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';

interface MutationList {
  MUTATIONS: { caughtBy: string }[];
  SIMULATION: string;
  faultsOfList(): string[];
}

/** Not part of the build of the tests, which has TypeScript only. */
const list = (await import(pathToFileURL(resolve('test/mutations/list.mjs')).href)) as MutationList;

test('every mutation names one present line and a test that notices it', () => {
  expect(list.faultsOfList()).toEqual([]);
});

test('at least 40 mutations are for npm test alone', () => {
  const ofTests = list.MUTATIONS.filter(({ caughtBy }) => caughtBy !== list.SIMULATION);
  expect(ofTests.length).toBeGreaterThanOrEqual(40);
});
