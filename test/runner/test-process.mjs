import { fork } from 'node:child_process';

/** What runs usually reports itself that its limit is over; a blocked process cannot. */
const GRACE_MS = 10_000;

/** Most code of a test runs once, so the baseline compiler suffices. A larger young generation needs fewer collections. */
const FAST_START = ['--liftoff-only', '--single-threaded-gc', '--min-semi-space-size=16', '--max-semi-space-size=32'];

/** Runs test files one after another in a process group of its own, so that what tests start ends with it. */
export class TestProcess {
  #child = fork(new URL('run-file.mjs', import.meta.url), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: ['--no-warnings', '--enable-source-maps', ...FAST_START],
    detached: true,
  });
  #ended = new Promise((resolve) => this.#child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`)));

  constructor() {
    this.#child.stdout.pipe(process.stdout, { end: false });
    this.#child.stderr.pipe(process.stderr, { end: false });
  }

  /** The file's result; throws when the process ended or is blocked. */
  async run(file, loadingLimitMs) {
    let running = 'the import of the file';
    let watchdog;
    try {
      return await new Promise((resolve, reject) => {
        const watch = (limitMs) => {
          clearTimeout(watchdog);
          const error = new Error(`${running} did not end within ${limitMs} ms and blocked the process`);
          watchdog = setTimeout(() => reject(error), limitMs + GRACE_MS);
        };
        this.#child.removeAllListeners('message').on('message', ({ result, failure, ...started }) => {
          if (result) return resolve(result);
          if (failure) return reject({ message: failure, stack: failure });
          running = started.running;
          watch(started.limitMs);
        });
        void this.#ended.then((how) => reject(new Error(`the process ended with ${how} during ${running}`)));
        watch(loadingLimitMs);
        this.#child.send(file);
      });
    } finally {
      clearTimeout(watchdog);
    }
  }

  /** Closes what the files shared, and returns what is still open then. */
  async close() {
    const closed = new Promise((resolve, reject) =>
      this.#child
        .removeAllListeners('message')
        .on('message', ({ open, failure }) => (open ? resolve(open) : reject({ message: failure, stack: failure }))),
    );
    this.#child.send('close');
    const ended = this.#ended.then((how) => Promise.reject(new Error(`the process ended with ${how} while it closed`)));
    return Promise.race([closed, ended]);
  }

  async end() {
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // No process of the group is left.
    }
    await this.#ended;
  }
}
