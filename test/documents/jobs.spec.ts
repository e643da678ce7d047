import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { CLI, newFolder } from '../support/process.js';

/** A checkout whose scripts are those of package.json, and whose built command is the code under test. */
function checkout(): string {
  const folder = newFolder();
  for (const name of ['bin', 'package.json']) cpSync(name, join(folder, name), { recursive: true });
  mkdirSync(join(folder, 'dist'));
  symlinkSync(resolve(CLI), join(folder, 'dist/cli.js'));
  return folder;
}

/** Fails if the port is taken. */
async function expectFree(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((listening, fail) => server.once('error', fail).listen(port, '127.0.0.1', listening));
  await new Promise((closed) => server.close(closed));
}

/** Whether a process runs; of a group, whether one of it does. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Ends what is left of the group of a shell. */
function endGroup(shell: number): void {
  if (isRunning(-shell)) process.kill(-shell, 'SIGKILL');
}

const locksIn = (folder: string): string[] =>
  existsSync(join(folder, 'data'))
    ? readdirSync(join(folder, 'data')).filter((name) => /^lock-.*sock$/.test(name))
    : [];

/** In dash `$(jobs -p)` is empty, because a command substitution has no jobs of its shell. */
const KILL: [string, string][] = [
  ['bash', 'kill $(jobs -p)'],
  ['sh', 'jobs -p > jobs.txt; kill $(cat jobs.txt)'],
];

describe.each(KILL)('in %s, "%s" ends', (shell, kill) => {
  /** Starts a line in the background of a shell, waits for its log, and kills it as the documents say. */
  async function follow(
    start: string,
    port: number,
    ready: string,
    running: (folder: string) => void,
  ): Promise<string> {
    const folder = checkout();
    const { PATH = '', HOME = '' } = process.env;
    const env = { PATH, HOME, PORT: String(port), CLIENT_SECRET: 'x'.repeat(43) };
    const child = spawn(shell, ['-s'], { cwd: folder, env, detached: true, stdio: ['pipe', 'ignore', 'pipe'] });
    const ended = new Promise<number | null>((done) => child.once('close', done));
    const log = join(folder, 'log.txt');
    try {
      child.stdin.write(`${start} > log.txt 2>&1 &\n`);
      await eventually(`${start} is ready`, () => existsSync(log) && readFileSync(log, 'utf8').includes(ready));
      running(folder);
      child.stdin.end(`${kill}\nwait\n`);
      await ended;
      return folder;
    } finally {
      endGroup(Number(child.pid));
    }
  }

  test('the server that npm start runs, and it leaves neither its port nor its folder locked', async () => {
    const port = await freePort();
    let pid = 0;
    const folder = await follow('npm start', port, `at http://127.0.0.1:${port}`, (data) => {
      const [lock = ''] = locksIn(data);
      pid = Number(/^lock-(\d+)-/.exec(lock)?.[1]);
      expect(isRunning(pid)).toBe(true);
    });
    expect([isRunning(pid), locksIn(folder)]).toEqual([false, []]);
    await expectFree(port);
  });

  test('the receiver that npm run usher -- listen runs', async () => {
    const port = await freePort();
    await follow(`npm run -s usher -- listen --port ${port}`, port, 'Listening', () => undefined);
    await expectFree(port);
  });
});
