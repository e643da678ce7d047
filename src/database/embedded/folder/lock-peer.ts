import { rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { connectTo } from './unix-sockets.js';

/** What the process behind a lock socket announces, one state a line, each once and in this order. */
export type LockState = 'contending' | 'holding' | 'serving';

/** After this a silent process counts as the holder: it is alive, but busy, stopped or hanging. */
const CONTENTION_TIMEOUT_MS = 5_000;
/** A first start takes 5 to 10 s. */
const START_TIMEOUT_MS = 60_000;

/** Another live opener of the folder, in this process or another one, seen through its lock socket. */
export class LockPeer {
  readonly #socket: Socket;
  #received = '';
  #closed = false;

  private constructor(
    readonly name: string,
    socket: Socket,
  ) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => void (this.#received += text));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => void (this.#closed = true));
  }

  /** Undefined if no process listens on the socket; the socket file of a dead process is removed. */
  static async connect(folder: string, name: string): Promise<LockPeer | undefined> {
    const path = join(folder, name);
    const socket = await connectTo(path);
    if (socket === 'refused') await rm(path, { force: true });
    return typeof socket === 'string' ? undefined : new LockPeer(name, socket);
  }

  get pid(): number {
    return Number(this.name.split('-')[1]);
  }

  /** Whether it takes the lock; false if it withdraws or ends. A silent peer counts as the holder. */
  holdsLock(): Promise<boolean> {
    return this.#announces('holding', CONTENTION_TIMEOUT_MS, true);
  }

  /** Whether it opens its Postgres socket; false if it ends or stays silent. */
  isServing(): Promise<boolean> {
    return this.#announces('serving', START_TIMEOUT_MS, false);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #announces(state: LockState, timeoutMs: number, onTimeout: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (answer: boolean): void => {
        clearTimeout(timer);
        this.#socket.off('data', check).off('close', check);
        resolve(answer);
      };
      const check = (): void => {
        if (this.#received.includes(state)) settle(true);
        else if (this.#closed) settle(false);
      };
      const timer = setTimeout(() => settle(onTimeout), timeoutMs);
      this.#socket.on('data', check).on('close', check);
      check();
    });
  }
}
