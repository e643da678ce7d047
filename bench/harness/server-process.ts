import { type ChildProcess, fork, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { atEnd } from './cleanup.js';

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: { start: string };
};
/** Of every measured process. It has the flags of `npm start`. */
const PROBE = [...scripts.start.match(/--\S+/g)!, '--import', new URL('cpu-probe.mjs', import.meta.url).href];
const READY = /(http:\/\/127\.0\.0\.1:\d+)/;

/** Processor time in microseconds, user and system, and resident memory in bytes. */
interface Used {
  cpu: number;
  memory: number;
}

export type Settings = Record<string, string>;

/** A measured process: a built entry of Usher, or one of the reference servers. It ends with its row. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    /** Its address, once it listens. */
    readonly url: string,
    /** From the start of the process until it listened. */
    readonly startedInMs: number,
  ) {}

  /** Starts `entry` and waits until it prints its address. Its environment is `settings` alone. */
  static async start(entry: string, settings: Settings = {}): Promise<ServerProcess> {
    const startedAt = performance.now();
    const child = fork(entry, [], {
      execArgv: PROBE,
      env: environment({ PORT: '0', ...settings }),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // A Ctrl-C in the terminal reaches the bench alone, which then stops its processes itself.
      detached: true,
    });
    atEnd(() => stop(child));
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => void (printed = (printed + text).slice(-10_000)));
    while (!READY.test(printed)) {
      if (hasEnded(child)) throw new Error(`${entry} ended: ${printed}`);
      await Promise.race([once(child.stdout!, 'data'), once(child.stderr!, 'data'), once(child, 'exit')]);
    }
    return new ServerProcess(child, READY.exec(printed)![1]!, performance.now() - startedAt);
  }

  get pid(): number {
    return this.child.pid!;
  }

  async used(): Promise<Used> {
    this.child.send('used');
    const [used] = (await once(this.child, 'message')) as [Used];
    return used;
  }

  /** The processor time used so far, in microseconds. */
  readonly cpu = async (): Promise<number> => (await this.used()).cpu;

  stop(): Promise<void> {
    return stop(this.child);
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Runs a command to its end and returns what it used, beside the time it took in milliseconds. */
export async function runCommand(entry: string, args: string[], settings: Settings): Promise<Used & { ms: number }> {
  const startedAt = performance.now();
  const options: SpawnOptions = {
    env: environment({ ...settings, BENCH_REPORTS_AT_EXIT: '1' }),
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  };
  const child = spawn(process.execPath, [...PROBE, entry, ...args], options);
  const report = text(child.stdio[3] as Readable);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${entry} ${args.join(' ')} ended with ${code}`);
  return { ...(JSON.parse(await report) as Used), ms: performance.now() - startedAt };
}

const environment = (settings: Settings): Settings => ({
  PATH: process.env.PATH ?? '',
  NODE_ENV: 'production',
  ...settings,
});

/** A file of the build, such as `main.js`. */
export const built = (name: string): string => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));

/** A reference server of this folder. */
export const reference = (name: string): string => fileURLToPath(new URL(`../references/${name}`, import.meta.url));
