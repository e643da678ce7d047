import { createEmptyTestResult } from '@jest/test-result';
import { getState, resetState, run } from 'jest-circus';
import { formatResultsErrors } from 'jest-message-util';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BUILT, ROOT } from './build.mjs';

process.on('unhandledRejection', (error) => getState().unhandledErrors.push(error));

/** Runs one test file, as the build has it, with Jest's own describe, test and hooks. */
export async function runFile({ path, rootDir, testTimeout = 5_000, testNamePattern }) {
  resetState();
  Object.assign(getState(), {
    testTimeout,
    testNamePattern: testNamePattern ? new RegExp(testNamePattern, 'i') : null,
  });
  const start = Date.now();
  await import(pathToFileURL(`${BUILT}/${relative(ROOT, path).replace(/ts$/, 'js')}`));
  const { testResults, unhandledErrors } = await run();
  if (testResults.length === 0) unhandledErrors.push('Error: this file has no test');
  const { jest } = await import(`${BUILT}/node_modules/@jest/globals/index.js`);
  jest.restoreAllMocks();
  const end = Date.now();
  const results = testResults.map(assertionResult);
  const failed = results.filter(({ status }) => status === 'failed');
  if (unhandledErrors.length > 0)
    failed.push(assertionResult({ testPath: ['', '(after the tests)'], errors: unhandledErrors }));
  const count = (wanted) => results.filter(({ status }) => status === wanted).length;
  return {
    ...createEmptyTestResult(),
    testFilePath: path,
    testResults: results,
    failureMessage: formatResultsErrors(failed, { rootDir, testMatch: [] }, { noStackTrace: false }, path),
    numFailingTests: failed.length,
    numPassingTests: count('passed'),
    numPendingTests: count('pending'),
    perfStats: { ...createEmptyTestResult().perfStats, start, end, runtime: end - start, slow: end - start > 5_000 },
  };
}

function assertionResult({
  testPath: [, ...titles],
  duration = null,
  errors,
  errorsDetailed = [],
  status,
  invocations,
}) {
  const skipped = status === 'skip' || status === 'todo';
  return {
    ancestorTitles: titles.slice(0, -1),
    title: titles.at(-1),
    fullName: titles.join(' '),
    duration,
    status: errors.length > 0 ? 'failed' : skipped ? 'pending' : 'passed',
    failureMessages: errors,
    failureDetails: errorsDetailed,
    invocations,
    numPassingAsserts: 0,
  };
}
