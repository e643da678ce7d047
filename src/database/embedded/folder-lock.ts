import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type LockState, Rival } from './rival.js';
import { close, listen } from './unix-socket.js';

const LOCK_NAME = /^lock-\d+-[0-9a-f]{12}\.sock$/;
const UNBORN_NAME = /^new-[0-9a-f]{12}\.sock$/;

/**
 * The lock on a folder: a listening Unix socket in it. The kernel closes it with its process, so a crash leaves a file
 * that refuses connections and locks nothing. A contender first listens, then looks for others that listen, and takes
 * the lock when it sees none or has seen all it saw step back; of two contenders, the later to look sees the other.
 */
export class FolderLock {
  readonly #server: Server;
  readonly #listeners = new Set<Socket>();
  #words: LockState[] = ['contending'];

  private constructor(
    private readonly folder: string,
    private readonly name: string,
  ) {
    this.#server = createServer((socket) => this.#greet(socket));
  }

  /** The lock, or the rival that has it. */
  static async take(folder: string): Promise<FolderLock | Rival> {
    for (;;) {
      const outcome = await FolderLock.#contend(folder);
      if (outcome) return outcome;
    }
  }

  static async #contend(folder: string): Promise<FolderLock | Rival | undefined> {
    const lock = new FolderLock(folder, `lock-${process.pid}-${randomBytes(6).toString('hex')}.sock`);
    if (!(await lock.#enter())) return undefined;
    try {
      return await lock.#settle(await lock.#rivals());
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** This lock, or the rival that holds it, or undefined where everybody stepped back and has to try again. */
  async #settle(rivals: readonly Rival[]): Promise<FolderLock | Rival | undefined> {
    // Smaller names go first, so that contenders never wait for each other in a ring.
    const stepsBack = rivals.some((rival) => rival.name < this.name);
    if (stepsBack) await this.release();
    const holding = await Promise.all(rivals.map((rival) => rival.holds()));
    const holder = rivals[holding.indexOf(true)];
    for (const rival of rivals) if (rival !== holder) rival.close();
    if (holder || stepsBack) {
      await this.release();
      return holder;
    }
    await this.#hold();
    return this;
  }

  /** Tells those who wait for it that the Postgres socket is open. */
  serving(): void {
    this.#say('serving');
  }

  async release(): Promise<void> {
    if (!this.#server.listening) return;
    await rm(join(this.folder, this.name), { force: true });
    for (const socket of this.#listeners) socket.destroy();
    await close(this.#server);
  }

  /** The name appears only once somebody listens behind it: a file that refuses is the file of a dead process. */
  async #enter(): Promise<boolean> {
    const unborn = join(this.folder, `new-${randomBytes(6).toString('hex')}.sock`);
    await listen(this.#server, unborn);
    try {
      await rename(unborn, join(this.folder, this.name));
      return true;
    } catch (error) {
      await close(this.#server);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false; // swept up by a new holder
      throw error;
    }
  }

  async #rivals(): Promise<Rival[]> {
    const names = (await readdir(this.folder)).filter((name) => LOCK_NAME.test(name) && name !== this.name);
    const rivals = await Promise.all(names.map((name) => Rival.at(this.folder, name)));
    return rivals.filter((rival) => rival !== undefined);
  }

  async #hold(): Promise<void> {
    this.#say('holding');
    const leftovers = (await readdir(this.folder)).filter((name) => UNBORN_NAME.test(name));
    await Promise.all(leftovers.map((name) => rm(join(this.folder, name), { force: true })));
  }

  #greet(socket: Socket): void {
    this.#listeners.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#listeners.delete(socket));
    socket.resume();
    socket.write(this.#words.map((word) => `${word}\n`).join(''));
  }

  #say(word: LockState): void {
    this.#words.push(word);
    for (const socket of this.#listeners) socket.write(`${word}\n`);
  }
}
