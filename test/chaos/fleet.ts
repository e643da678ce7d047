import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import { answers, end, hasEnded, start, waitFor } from './processes.js';

export const SERVER = 'dist/main.js';
export type Role = 'api' | 'worker' | 'all';

const DRAIN_MS = 30_000;
const LOOK_EVERY_MS = 250;
/** Seconds on a machine that has time for it. */
const START_MS = 180_000;

/** One process of Usher, which is started again some moments after it ends. */
export class Supervised {
  private child: ChildProcess | undefined;
  private wasUp = false;
  private isBusy = false;
  private isRetired = false;

  constructor(
    readonly name: string,
    readonly role: Role,
    readonly port: number,
    private readonly launch: () => ChildProcess,
    private readonly random: Random,
    /** Told of an end that nobody asked for. */
    private readonly onOwnEnd: (line: string) => void,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Up, and no fault under way. */
  get isFree(): boolean {
    return this.wasUp && this.child !== undefined && !hasEnded(this.child) && !this.isBusy;
  }

  start(): void {
    if (this.isRetired) return;
    const child = this.launch();
    this.child = child;
    void this.watchStart(child);
    child.once('exit', (code, signal) => {
      // One that is not up yet may end: it may have missed its services.
      if (!this.isBusy && this.wasUp) this.onOwnEnd(`${this.name} ended by itself (${signal ?? code})`);
      setTimeout(() => this.start(), this.random.between(300, 2_000));
    });
  }

  private async watchStart(child: ChildProcess): Promise<void> {
    this.wasUp = false;
    while (!hasEnded(child) && !(await answers(this.port))) await sleep(LOOK_EVERY_MS);
    this.wasUp = !hasEnded(child);
  }

  waitUntilUp(): Promise<void> {
    return waitFor(`${this.name} answers`, START_MS, () => answers(this.port));
  }

  kill(): Promise<void> {
    return this.during(async (child) => void (await end(child, 'SIGKILL', DRAIN_MS)));
  }

  drain(): Promise<void> {
    return this.during(async (child) => {
      if (!(await end(child, 'SIGTERM', DRAIN_MS)))
        this.onOwnEnd(`${this.name} did not end within ${DRAIN_MS / 1_000} s of SIGTERM`);
    });
  }

  pause(ms: number): Promise<void> {
    return this.during(async (child) => {
      child.kill('SIGSTOP');
      await sleep(ms);
      child.kill('SIGCONT');
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

/** The processes of Usher under test. */
export class Fleet {
  readonly ownEnds: string[] = [];
  private readonly members: Supervised[] = [];

  constructor(
    private readonly folder: string,
    private readonly settings: Record<string, string>,
    private readonly random: Random,
  ) {}

  add(name: string, role: Role, port: number): void {
    const env = { ...bareEnvironment(), ...this.settings, USHER_ROLE: role, PORT: String(port) };
    const launch = (): ChildProcess => start(process.execPath, [SERVER], join(this.folder, `${name}.log`), env);
    const tell = (line: string): void => void this.ownEnds.push(line);
    this.members.push(new Supervised(name, role, port, launch, this.random, tell));
  }

  async start(): Promise<void> {
    for (const member of this.members) member.start();
    await this.waitUntilUp();
  }

  async waitUntilUp(): Promise<void> {
    await Promise.all(this.members.map((member) => member.waitUntilUp()));
  }

  /** Where requests go. */
  get urls(): string[] {
    return this.members.filter(({ role }) => role !== 'worker').map(({ url }) => url);
  }

  /** One that a fault may befall, or undefined just now: of several the last one that is up is spared. */
  victim(role: Role): Supervised | undefined {
    const members = this.members.filter((member) => member.role === role);
    const free = members.filter((member) => member.isFree);
    return free.length >= Math.min(2, members.length) ? this.random.pick(free) : undefined;
  }

  async retire(): Promise<void> {
    await Promise.all(this.members.map((member) => member.retire()));
  }
}

/** Nothing of the caller's own settings. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, LOG_LEVEL: 'warn' };
}
