import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger, type LoggerService } from '@nestjs/common';
import type { Settings } from './backend.js';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Standard output or standard error of an invocation: a file, because the log writes to the file descriptor. */
class Output extends EventEmitter {
  private readonly path: string;
  readonly fd: number;
  readonly isTTY = false;

  /** After its end a process writes nothing. */
  hasEnded = false;

  constructor(name: string, folder: string) {
    super();
    this.path = join(folder, name);
    this.fd = openSync(this.path, 'a');
  }

  write(text: string, ...rest: unknown[]): boolean {
    if (!this.hasEnded) writeSync(this.fd, text);
    const done = rest.at(-1);
    if (typeof done === 'function') done();
    return true;
  }

  close(): string {
    closeSync(this.fd);
    return readFileSync(this.path, 'utf8');
  }
}

/** Thrown in place of the end of the process. */
class Exit extends Error {}

/** What a call of the entry sees as its process. */
class Invocation {
  private readonly folder = newFolder();
  readonly stdout = new Output('stdout', this.folder);
  readonly stderr = new Output('stderr', this.folder);
  readonly stdin: Readable & { isTTY?: boolean };
  readonly env: Settings;
  exitCode: number | undefined;
  hasExited = false;
  logger: LoggerService | undefined;

  constructor(settings: Settings, input: string | Buffer) {
    const { PATH = '', HOME = '' } = process.env;
    this.env = { PATH, HOME, PORT: '0', ...settings };
    this.stdin = Readable.from(input.length > 0 ? [Buffer.from(input)] : [], { objectMode: false });
  }

  readonly cwd = (): string => this.folder;

  readonly exit = (code?: number): never => {
    if (!this.hasExited) this.exitCode = code ?? this.exitCode;
    this.hasExited = this.stdout.hasEnded = this.stderr.hasEnded = true;
    throw new Exit(`the process ends with ${code}`);
  };
}

const running = new AsyncLocalStorage<Invocation>();

/** Within an invocation, `process` has the invocation's members; everywhere else it has its own. */
for (const name of ['stdout', 'stderr', 'stdin', 'env', 'exit', 'cwd'] as const) {
  const own = Object.getOwnPropertyDescriptor(process, name) as PropertyDescriptor;
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: own.enumerable === true,
    get: () => running.getStore()?.[name] ?? (own.get ? own.get.call(process) : own.value),
    set: (value: unknown) => void (own.value = value),
  });
}
/** `exitCode` cannot be redefined. Only Usher itself sets it, by the global name. */
globalThis.process = new Proxy(process, {
  get: (own, name) => Reflect.get((name === 'exitCode' && running.getStore()) || own, name) as unknown,
  set: (own, name, value) => Reflect.set((name === 'exitCode' && running.getStore()) || own, name, value),
});

/** Nest has one logger for a process. The one of a command must not take the lines of a server beside it. */
let ownLogger = Reflect.get(Logger, 'staticInstanceRef') as LoggerService | undefined;
Object.defineProperty(Logger, 'staticInstanceRef', {
  configurable: true,
  get: () => running.getStore()?.logger ?? ownLogger,
  set: (logger: LoggerService | undefined) => {
    const invocation = running.getStore();
    if (invocation) invocation.logger = logger;
    else ownLogger = logger;
  },
});

/**
 * Calls an entry of Usher in this process with only these settings, and returns what a process of its own would have left. To
 * start a process costs more than what most commands do.
 */
export async function invoke(settings: Settings, input: string | Buffer, entry: () => Promise<void>): Promise<Ended> {
  const invocation = new Invocation(settings, input);
  await running.run(invocation, async () => {
    await entry().catch((error: unknown) => {
      if (!invocation.hasExited) throw error;
    });
    // The log is written at the end of a turn of the event loop.
    await nextTurn();
    await nextTurn();
  });
  const { exitCode, stdout, stderr } = invocation;
  return { code: exitCode ?? 0, stdout: stdout.close(), stderr: stderr.close() };
}

/** Creates a folder that is deleted after the tests. */
export function newFolder(): string {
  return mkdtempSync(join(process.env.USHER_TEST_FOLDER ?? '', 'folder-'));
}
