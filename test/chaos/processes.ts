import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { createConnection } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CannotRun } from './options.js';

/** The running processes that this run started. They are killed when the run ends for any reason. */
const started = new Set<ChildProcess>();
process.on('exit', () => started.forEach((child) => child.kill('SIGKILL')));

export function killOnExit(child: ChildProcess): ChildProcess {
  started.add(child);
  child.once('exit', () => started.delete(child));
  child.once('error', () => started.delete(child));
  return child;
}

/** Starts a program and appends its output to a file. */
export function start(program: string, args: string[], logFile: string, env: NodeJS.ProcessEnv): ChildProcess {
  const log = openSync(logFile, 'a');
  const child = killOnExit(spawn(program, args, { stdio: ['ignore', log, log], env }));
  closeSync(log);
  return child;
}

export const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Signals a process and waits for its end; after `timeoutMs` it is killed. True if it ended before that. */
export async function end(child: ChildProcess, signal: NodeJS.Signals, timeoutMs: number): Promise<boolean> {
  if (hasEnded(child)) return true;
  const ended = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)));
  child.kill(signal);
  if (await Promise.race([ended, sleep(timeoutMs, false, { ref: false })])) return true;
  child.kill('SIGKILL');
  await ended;
  return false;
}

const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/bin', '/usr/local/bin'];

export function findBinary(name: string): string {
  const path = FOLDERS.map((folder) => join(folder, name)).find(isExecutable);
  if (path === undefined)
    throw new CannotRun(`${name} is not installed; install it, or use --backend embedded, which needs no services`);
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

export function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

export async function waitFor(what: string, timeoutMs: number, check: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + timeoutMs;
  while (!(await check().catch(() => false))) {
    if (Date.now() > until) throw new CannotRun(`timed out after ${timeoutMs / 1_000} s: ${what}`);
    await sleep(100);
  }
}
