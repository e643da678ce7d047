import { Worker } from 'jest-worker';

/** Those that keep one worker busy for about as long as the others need for all the rest. */
const LONGEST = ['/simulation/', '/start-up/faults', '/signals/', '/keys/', '/cli/commands'];

/**
 * Runs test files in Node's own modules, many files a process. Jest's own runner gives each file a sandbox that loads
 * Nest, TypeORM and BullMQ anew, for an isolation that no file here needs.
 */
export default class SharedModulesRunner {
  #config;

  constructor(globalConfig) {
    this.#config = globalConfig;
  }

  async runTests(tests, watcher, onStart, onResult, onFailure) {
    const numWorkers = Math.min(this.#config.maxWorkers, tests.length);
    const workers = new Worker(new URL('run-file.mjs', import.meta.url), {
      exposedMethods: ['runFile'],
      numWorkers,
      maxRetries: 0,
      forkOptions: { stdio: 'pipe', execArgv: ['--no-warnings', '--enable-source-maps', '--liftoff-only'] },
    });
    workers.getStdout().pipe(process.stdout);
    workers.getStderr().pipe(process.stderr);
    const waiting = longestFirst(tests);
    const runOneByOne = async () => {
      while (waiting.length > 0 && !watcher.isInterrupted()) {
        const test = waiting.shift();
        await onStart(test);
        const ran = workers.runFile({ ...this.#config, ...test.context.config, path: test.path });
        await ran.then((result) => onResult(test, result)).catch((error) => onFailure(test, error));
      }
    };
    await Promise.all(Array.from({ length: numWorkers }, runOneByOne));
    await workers.end();
  }
}

function longestFirst(tests) {
  const isLong = ({ path }) => LONGEST.some((part) => path.includes(part));
  return [...tests.filter(isLong), ...tests.filter((test) => !isLong(test))];
}
