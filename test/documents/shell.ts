import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { CLI, newFolder } from '../support/process.js';

/** A fenced block of a page. */
export interface Block {
  language: string;
  code: string;
}

/** The fenced blocks of a page, also those within a list. */
export const blocksOf = (page: string): Block[] =>
  [...readFileSync(page, 'utf8').matchAll(/^( *)```(\w*)\n([^]*?)^ *```$/gm)].map(([, indent, language, code]) => ({
    language: String(language),
    code: String(code).replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));

/** The same of a page that a server has made of it. */
export const servedBlocksOf = (page: string): Block[] =>
  [...page.matchAll(/<code class="language-(\w*)">([^<]*)</g)].map(([, language, code]) => ({
    language: String(language),
    code: `${unescaped(String(code))}\n`,
  }));

const unescaped = (text: string): string =>
  Object.entries({ lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }).reduce(
    (known, [name, character]) => known.replaceAll(`&${name};`, character),
    text,
  );

/** In a checkout `npm start` and `npm run -s usher -- …` are the built command; here it is the code under test. */
const NPM = `npm() { case "$1" in start) set -- serve;; *) shift 4;; esac; "${process.execPath}" "${resolve(CLI)}" "$@"; }`;

/** A shell of a reader: a checkout is its folder, and the commands of a page are pasted into it. */
export class Shell {
  readonly folder = newFolder();
  private readonly bash: ChildProcessWithoutNullStreams;
  private stdout = '';
  private stderr = '';

  constructor(settings: Settings) {
    const { PATH = '', HOME = '' } = process.env;
    symlinkSync(resolve('docs'), join(this.folder, 'docs'));
    this.bash = spawn('bash', ['-s'], { cwd: this.folder, env: { PATH, HOME, ...settings }, detached: true });
    this.bash.stdout.setEncoding('utf8').on('data', (text: string) => void (this.stdout += text));
    this.bash.stderr.setEncoding('utf8').on('data', (text: string) => void (this.stderr += text));
    this.bash.stdin.write(`${NPM}\n`);
  }

  /** Pastes a block, and returns what it printed. A command that fails is an error. */
  async paste(code: string): Promise<string> {
    this.stdout = '';
    this.bash.stdin.write(`${code}\necho; echo "==== $? ===="\n`);
    const [, printed = '', status] = await eventually(`the shell has run ${code}`, () =>
      /^([^]*)\n==== (\d+) ====\n/.exec(this.stdout),
    );
    if (status !== '0' || /^(usher|curl): /m.test(printed)) throw new Error(`${code}failed: ${printed}${this.stderr}`);
    return printed;
  }

  /** Ends the shell and what its commands have started, which is one process group. */
  async end(): Promise<void> {
    const ended = new Promise((done) => this.bash.once('close', done));
    process.kill(-Number(this.bash.pid), 'SIGTERM');
    this.bash.stdin.end();
    await ended;
  }
}
