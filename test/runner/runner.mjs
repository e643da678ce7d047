import { BUILT } from './build.mjs';
import { TestProcess } from './test-process.mjs';

/** Those that keep one process busy for about as long as the others need for all the rest. */
const LONGEST = [
  '/services/resend-crash',
  '/health/health.',
  '/services/redis-failover',
  '/services/mixed-versions',
  '/services/processes',
  '/services/migrate',
  '/simulation/',
  '/failing-receiver',
  '/queue/lost-jobs',
  '/undelivered/resends',
  '/start-up-faults',
  '/optional-packages',
  '/drain.',
  '/tracing.',
  '/runner/runner',
  '/record/resend',
  '/health/metrics',
  '/console/buttons',
];

/**
 * Runs test files in Node's own modules, many files a process. Jest's own runner gives each file a sandbox that loads
 * Nest, TypeORM and BullMQ anew, for an isolation that no file here needs. jest-light-runner 0.8.2 has no time limit
 * (one hanging test hangs the run), passes a file with an unhandled rejection, and needs Node 22.
 */
export default class SharedModulesRunner {
  #config;

  constructor(globalConfig) {
    this.#config = globalConfig;
  }

  async runTests(tests, watcher, onStart, onResult, onFailure) {
    const { HANG_LIMIT_MS } = await import(`${BUILT}/test/support/hang-limit.js`);
    const waiting = longestFirst(tests);
    const runOneByOne = async () => {
      let process;
      let last;
      while (waiting.length > 0 && !watcher.isInterrupted()) {
        const test = (last = waiting.shift());
        const { rootDir, testTimeout = HANG_LIMIT_MS } = test.context.config;
        const { testNamePattern } = this.#config;
        process ??= new TestProcess();
        await onStart(test);
        let isReusable = false;
        try {
          const result = await process.run({ path: test.path, rootDir, testTimeout, testNamePattern }, HANG_LIMIT_MS);
          isReusable = result.numFailingTests === 0;
          await onResult(test, result);
        } catch (error) {
          await onFailure(test, error);
        }
        if (isReusable) continue;
        // What goes on in it after a failure must not disturb the next file.
        await process.end();
        process = undefined;
      }
      if (!process) return;
      try {
        const open = await process.close();
        if (open.length > 0)
          throw new Error(`the files of this process left open: ${open.join(', ')}; close it in a hook`);
      } catch (error) {
        await onFailure(last, error);
      }
      await process.end();
    };
    const atOnce = Math.min(this.#config.maxWorkers, tests.length);
    await Promise.all(Array.from({ length: atOnce }, runOneByOne));
  }
}

function longestFirst(tests) {
  const isLong = ({ path }) => LONGEST.some((part) => path.includes(part));
  return [...tests.filter(isLong), ...tests.filter((test) => !isLong(test))];
}
