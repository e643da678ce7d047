import { createEmptyTestResult } from '@jest/test-result';
import { addEventHandler, getState, resetState, run } from 'jest-circus';
import { formatResultsErrors } from 'jest-message-util';
import { relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { BUILT, ROOT } from './build.mjs';

/** What a file opened is closed within milliseconds, some timers of BullMQ within seconds. */
const CLOSING_LIMIT_MS = 60_000;
const AGAIN_MS = 20;
/** The channel to the runner and both outputs. */
let openAtStart;
/** What the shared server opens and closes while it runs. It is checked when the process closes, and reported for its last file. */
const COMES_AND_GOES = new Set(['Timeout', 'Immediate', 'TCPSocketWrap', 'PipeWrap', 'FSReqPromise', 'FSReqCallback']);

/** What no test awaits fails the test that runs at that moment. */
for (const event of ['unhandledRejection', 'uncaughtException'])
  process.on(event, (error) => {
    const { currentlyRunningTest, unhandledErrors } = getState();
    (currentlyRunningTest?.errors ?? unhandledErrors).push(error);
  });
/** Tells the runner what runs now, and for how long it may. */
addEventHandler(({ name, hook, test }, { testTimeout, currentlyRunningTest }) => {
  if (name !== 'hook_start' && name !== 'test_fn_start') return;
  const title = titleOf(test ?? currentlyRunningTest ?? hook.parent);
  process.send({ running: hook ? `${hook.type} of ${title}` : title, limitMs: (hook ?? test).timeout ?? testTimeout });
});

function titleOf({ name, parent }) {
  if (!parent) return 'the file';
  return parent.parent ? `${titleOf(parent)} ${name}` : name;
}

// The runner has ended. What the tests started belongs to the process group and ends too.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
process.on('message', async (file) => {
  openAtStart ??= [process.stdout, process.stderr] && process.getActiveResourcesInfo();
  try {
    process.send(file === 'close' ? { open: await close() } : { result: await runFile(file) });
  } catch (error) {
    process.send({ failure: error?.stack ?? String(error) });
  }
});

/** Runs one test file, as the build has it, with Jest's own describe, test and hooks. */
async function runFile({ path, rootDir, testTimeout, testNamePattern }) {
  resetState();
  Object.assign(getState(), {
    testTimeout,
    testNamePattern: testNamePattern ? new RegExp(testNamePattern, 'i') : null,
  });
  const start = Date.now();
  // First what most tests share: on Node 20, packages that two files load at the same moment can stay half loaded.
  await sharedServerOf();
  await import(pathToFileURL(`${BUILT}/${relative(ROOT, path).replace(/ts$/, 'js')}`));
  const { testResults, unhandledErrors } = await run();
  const { jest } = await import(`${BUILT}/node_modules/@jest/globals/index.js`);
  jest.restoreAllMocks();
  // Postgres has few connections, and holds the queue too, so there a file has a server of its own.
  if (process.env.TEST_BACKEND === 'postgres') await (await sharedServerOf()).close();
  const limitMs = Math.min(testTimeout, CLOSING_LIMIT_MS);
  process.send({ running: 'closing what the tests opened', limitMs });
  const open = await leftOpen(limitMs);
  if (open.length > 0) unhandledErrors.push(`Error: this file left open: ${open.join(', ')}; close it in a hook`);
  const end = Date.now();
  const results = testResults.map(assertionResult);
  const failed = results.filter(({ status }) => status === 'failed');
  if (unhandledErrors.length > 0)
    failed.push(assertionResult({ testPath: ['', '(after the tests)'], errors: unhandledErrors }));
  const count = (wanted) => results.filter(({ status }) => status === wanted).length;
  return {
    ...createEmptyTestResult(),
    testFilePath: path,
    // The details hold objects that no message between processes can.
    testResults: results.map((result) => ({ ...result, failureDetails: [] })),
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

const sharedServerOf = async () => (await import(`${BUILT}/test/support/shared-server.js`)).sharedServer;

/** What still keeps this process alive, once it is nothing or the limit is over. */
async function leftOpen(limitMs) {
  const sharedServer = await sharedServerOf();
  for (const until = Date.now() + limitMs; ;) {
    const open = process.getActiveResourcesInfo();
    for (const kind of [...openAtStart, ...sharedServer.listeners])
      if (open.includes(kind)) open.splice(open.indexOf(kind), 1);
    const left = open.filter((kind) => !sharedServer.isOpen || !COMES_AND_GOES.has(kind));
    if (left.length === 0 || Date.now() > until) return left;
    await sleep(AGAIN_MS);
  }
}

/** Stops the shared server, after the last file. Then nothing at all may be left open. */
async function close() {
  const sharedServer = await sharedServerOf();
  await sharedServer.close();
  return leftOpen(CLOSING_LIMIT_MS);
}
