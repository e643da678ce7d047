import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { copyTemplate } from '../../support/embedded-template.js';
import { BUILT, SHORT_LIVED } from '../../support/process.js';

const EMBEDDED = join(BUILT, 'src/database/embedded');

/** The temporary folders of one spec file; `clean` removes all of them. */
export class Folders {
  readonly #created: string[] = [];

  async empty(): Promise<string> {
    const folder = await mkdtemp(join(process.env.USHER_TEST_FOLDER ?? '', 'own-'));
    this.#created.push(folder);
    return folder;
  }

  /** A folder with a database that has Usher's tables. */
  async initialised(): Promise<string> {
    const folder = await this.empty();
    copyTemplate(folder);
    return folder;
  }

  async clean(): Promise<void> {
    await Promise.all(this.#created.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

/** A process that runs a script against the compiled code; the test reads its output line by line. */
export class Child {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exit: Promise<unknown>;

  constructor(script: string, ...args: string[]) {
    const prelude = `import { openEmbeddedPostgres } from '${EMBEDDED}/index.js';\nimport pg from 'pg';\n`;
    const options = [...SHORT_LIVED, '--input-type=module', '--eval', prelude + script, '--', ...args];
    this.#process = spawn(process.execPath, options, { cwd: EMBEDDED, stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.#process.stdout) throw new Error('the child has no output');
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
    this.#exit = once(this.#process, 'exit');
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** The next line of output; undefined at its end. */
  async line(): Promise<string | undefined> {
    const { done, value } = await this.#lines.next();
    return done ? undefined : value;
  }

  /** Continues a child that waits for a line of input. */
  start(): void {
    this.#process.stdin?.write('go\n');
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }

  /** Ends the child's input and returns its exit code. */
  async finish(): Promise<number | null> {
    this.#process.stdin?.end();
    await this.#exit;
    return this.#process.exitCode;
  }
}

export const UNTIL_INPUT_ENDS = `await new Promise((r) => process.stdin.on('end', r).resume());`;

/** Checks the condition once per iteration of the event loop until it holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((again) => setImmediate(again));
}
