import { rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { connectTo } from './unix-socket.js';

/** What the process behind a lock socket says of itself, each word once, in this order. */
export type LockState = 'contending' | 'holding' | 'serving';

/** A process that says nothing for so long is busy, stopped or hangs; it is alive all the same, and keeps the folder. */
const CONTEST_LIMIT_MS = 5_000;
/** A first start takes 5 to 10 s. */
const START_LIMIT_MS = 60_000;

/** Another process, or another opener in this one, that is alive at the folder's lock. */
export class Rival {
  readonly #socket: Socket;
  #heard = '';
  #gone = false;

  private constructor(
    readonly name: string,
    socket: Socket,
  ) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (words: string) => void (this.#heard += words));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => void (this.#gone = true));
  }

  /** undefined if nobody listens there; what a dead process left is removed. */
  static async at(folder: string, name: string): Promise<Rival | undefined> {
    const path = join(folder, name);
    const socket = await connectTo(path);
    if (socket === 'refused') await rm(path, { force: true });
    return typeof socket === 'string' ? undefined : new Rival(basename(path), socket);
  }

  get pid(): number {
    return Number(this.name.split('-')[1]);
  }

  /** Whether it takes the lock; false if it steps back or ends. A silent one is taken to hold it. */
  holds(): Promise<boolean> {
    return this.#says('holding', CONTEST_LIMIT_MS, true);
  }

  /** Whether it opens its Postgres socket; false if it ends, or stays silent. */
  serves(): Promise<boolean> {
    return this.#says('serving', START_LIMIT_MS, false);
  }

  get isGone(): boolean {
    return this.#gone;
  }

  close(): void {
    this.#socket.destroy();
  }

  #says(state: LockState, limitMs: number, ifSilent: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const decide = (answer: boolean): void => {
        clearTimeout(timer);
        this.#socket.off('data', look).off('close', look);
        resolve(answer);
      };
      const look = (): void => {
        if (this.#heard.includes(state)) decide(true);
        else if (this.#gone) decide(false);
      };
      const timer = setTimeout(() => decide(ifSilent), limitMs);
      this.#socket.on('data', look).on('close', look);
      look();
    });
  }
}
