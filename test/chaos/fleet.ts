import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import { answers, end, hasEnded, start, waitFor } from './processes.js';

export const SERVER = 'dist/main.js';
type Settings = Record<string, string>;
export type Role = 'api' | 'worker' | 'all';

/** How far the clock of a process may be off, in milliseconds: none has an even number of retry intervals. */
const CLOCKS_MS = [0, 7_201_300, -601_700];

const offBy = (ms: number): string[] => [
  '--import',
  `data:text/javascript,const now=Date.now;Date.now=()=>now()+(${ms});`,
];

const DRAIN_MS = 30_000;
const POLL_MS = 250;
/** A start takes seconds on an idle machine, but much longer on a loaded one. */
const START_TIMEOUT_MS = 180_000;

/** One Usher process, which is started again shortly after it ends. */
export class Supervised {
  private child: ChildProcess | undefined;
  private wasUp = false;
  private isBusy = false;
  private isRetired = false;
  private nextSettings: Settings = {};

  constructor(
    readonly name: string,
    readonly role: Role,
    readonly port: number,
    private readonly launch: (settings: Settings) => ChildProcess,
    private readonly random: Random,
    /** Called if the process ends without a fault. */
    private readonly onUnexpectedEnd: (line: string) => void,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child!.pid!;
  }

  /** Whether it is up and has no fault at the moment. */
  get isFree(): boolean {
    return this.wasUp && this.child !== undefined && !hasEnded(this.child) && !this.isBusy;
  }

  start(settings: Settings = {}): void {
    if (this.isRetired) return;
    const child = this.launch(settings);
    this.child = child;
    void this.watchStart(child);
    child.once('exit', (code, signal) => {
      // A process may end while it starts, because its services may be down.
      if (!this.isBusy && this.wasUp) this.onUnexpectedEnd(`${this.name} ended by itself (${signal ?? code})`);
      const next = this.nextSettings;
      this.nextSettings = {};
      setTimeout(() => this.start(next), this.random.between(300, 2_000));
    });
  }

  private async watchStart(child: ChildProcess): Promise<void> {
    this.wasUp = false;
    while (!hasEnded(child) && !(await answers(this.port))) await sleep(POLL_MS);
    this.wasUp = !hasEnded(child);
  }

  waitUntilUp(): Promise<void> {
    return waitFor(`${this.name} answers`, START_TIMEOUT_MS, () => answers(this.port));
  }

  kill(): Promise<void> {
    return this.during(async (child) => void (await end(child, 'SIGKILL', DRAIN_MS)));
  }

  drain(): Promise<void> {
    return this.during(async (child) => {
      if (!(await end(child, 'SIGTERM', DRAIN_MS)))
        this.onUnexpectedEnd(`${this.name} did not end within ${DRAIN_MS / 1_000} s of SIGTERM`);
    });
  }

  pause(ms: number): Promise<void> {
    return this.during(async (child) => {
      child.kill('SIGSTOP');
      await sleep(ms);
      child.kill('SIGCONT');
    });
  }

  /** Kills the process, starts it with these settings, and after `ms` kills it again. */
  async misconfigure(settings: Settings, ms: number, work: () => Promise<void>): Promise<void> {
    this.nextSettings = settings;
    await this.kill();
    await this.during(async () => {
      await sleep(ms);
      await work();
    });
    await this.kill();
  }

  /** Stops the process, does the work and kills the process. The next one begins with what the work left. */
  replaceAfter(work: () => Promise<void>): Promise<void> {
    return this.during(async (child) => {
      child.kill('SIGSTOP');
      await work();
      await end(child, 'SIGKILL', DRAIN_MS);
    });
  }

  retire(): Promise<void> {
    this.isRetired = true;
    return this.drain();
  }

  private async during(fault: (child: ChildProcess) => Promise<void>): Promise<void> {
    if (!this.child) return;
    this.isBusy = true;
    await fault(this.child);
    this.isBusy = false;
  }
}

/** The Usher processes under test. */
export class Fleet {
  readonly unexpectedEnds: string[] = [];
  /** The names of processes that no fault may hit. */
  spared: string[] = [];
  private readonly members: Supervised[] = [];

  constructor(
    private readonly folder: string,
    private readonly settings: Settings,
    private readonly random: Random,
    /** With several builds, every start takes one of them at random, as during an upgrade. With one, a clock. */
    private readonly builds = [SERVER],
  ) {}

  add(name: string, role: Role, port: number): void {
    const env = { ...bareEnvironment(), ...this.settings, USHER_ROLE: role, PORT: String(port) };
    const launch = (settings: Settings): ChildProcess => {
      // 0.2.0 signs with the clock of its own process, and the embedded database of a sole process has that process's clock.
      const hasRightClock = this.builds.length > 1 || role === 'all';
      const clock = hasRightClock ? [] : offBy(this.random.pick(CLOCKS_MS));
      const args = [...clock, this.random.pick(this.builds)];
      return start(process.execPath, args, join(this.folder, `${name}.log`), { ...env, ...settings });
    };
    const record = (line: string): void => void this.unexpectedEnds.push(line);
    this.members.push(new Supervised(name, role, port, launch, this.random, record));
  }

  async start(): Promise<void> {
    for (const member of this.members) member.start();
    await this.waitUntilUp();
  }

  async waitUntilUp(): Promise<void> {
    await Promise.all(this.members.map((member) => member.waitUntilUp()));
  }

  /** Base URLs of the processes that serve the API. */
  get urls(): string[] {
    return this.members.filter(({ role }) => role !== 'worker').map(({ url }) => url);
  }

  pidOf(name: string): number {
    return this.members.find((member) => member.name === name)!.pid;
  }

  /** A process that a fault may hit, or undefined if none may be hit now. The last one that is up is spared. */
  victim(role: Role): Supervised | undefined {
    const members = this.members.filter((member) => member.role === role && !this.spared.includes(member.name));
    const free = members.filter((member) => member.isFree);
    return free.length >= Math.min(2, members.length) ? this.random.pick(free) : undefined;
  }

  async retire(): Promise<void> {
    await Promise.all(this.members.map((member) => member.retire()));
  }
}

/** An environment without the caller's Usher settings. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, LOG_LEVEL: 'warn' };
}
