import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../support/random.js';
import { CannotRun } from './options.js';

/** Every process that this run started and that has not ended; none is left behind, however the run ends. */
const started = new Set<ChildProcess>();
process.on('exit', () => started.forEach((child) => child.kill('SIGKILL')));

export function watchOver(child: ChildProcess): ChildProcess {
  started.add(child);
  child.once('exit', () => started.delete(child));
  child.once('error', () => started.delete(child));
  return child;
}

/** Starts a program whose output goes to the end of a file. */
export function start(program: string, args: string[], logFile: string, env: NodeJS.ProcessEnv): ChildProcess {
  const log = openSync(logFile, 'a');
  const child = watchOver(spawn(program, args, { stdio: ['ignore', log, log], env }));
  closeSync(log);
  return child;
}

export const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Signals a process and waits for its end; after `patienceMs` it is killed. True if it ended by itself. */
export async function end(child: ChildProcess, signal: NodeJS.Signals, patienceMs: number): Promise<boolean> {
  if (hasEnded(child)) return true;
  const ended = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)));
  child.kill(signal);
  if (await Promise.race([ended, sleep(patienceMs, false, { ref: false })])) return true;
  child.kill('SIGKILL');
  await ended;
  return false;
}

const PLACES = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/bin', '/usr/local/bin'];

export function findBinary(name: string): string {
  const path = PLACES.map((place) => join(place, name)).find(isExecutable);
  if (path === undefined)
    throw new CannotRun(`${name} is not installed; install it, or run with --backend embedded, which needs no service`);
  return path;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Below the range that the system takes for outgoing connections, so that it stays free while its owner restarts. */
const random = Random.of(process.pid, Date.now());
const given = new Set<number>();

export async function freePort(): Promise<number> {
  for (;;) {
    const port = random.between(20_000, 32_000);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

export function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

export async function waitFor(what: string, patienceMs: number, check: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + patienceMs;
  while (!(await check().catch(() => false))) {
    if (Date.now() > until) throw new CannotRun(`${what}: not within ${patienceMs / 1_000} s`);
    await sleep(100);
  }
}
