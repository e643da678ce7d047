import { randomBytes } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import { readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

const LOCK_NAME = /^lock-\d+-[0-9a-f]{12}\.sock$/;
const TEMPORARY_NAME = /^new-[0-9a-f]{12}\.sock$/;

/**
 * A listening Unix socket in the folder. The kernel closes it with its process, so a crashed process holds no lock.
 * README.md, "The lock", explains why of several contenders exactly one takes it.
 */
export class FolderLock {
  readonly #server: Server;
  readonly #watchers = new Set<Socket>();
  /** One {@link LockState} a line. */
  #announced = 'contending\n';

  private constructor(
    private readonly folder: string,
    private readonly name: string,
  ) {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Returns the lock, or the peer that holds it. */
  static async acquire(folder: string): Promise<FolderLock | LockPeer> {
    for (;;) {
      const lock = new FolderLock(folder, `lock-${process.pid}-${randomBytes(6).toString('hex')}.sock`);
      if (!(await lock.#publish())) continue;
      try {
        const outcome = await lock.#resolve(await lock.#findPeers());
        if (outcome) return outcome;
      } catch (error) {
        await lock.release();
        throw error;
      }
    }
  }

  /** This lock, or the peer that holds it, or undefined if every contender withdrew and has to try again. */
  async #resolve(peers: readonly LockPeer[]): Promise<FolderLock | LockPeer | undefined> {
    // The smaller name takes precedence, so contenders never wait for each other in a cycle.
    const withdraws = peers.some((peer) => peer.name < this.name);
    if (withdraws) await this.release();
    const holding = await Promise.all(peers.map((peer) => peer.holdsLock()));
    const holder = peers[holding.indexOf(true)];
    for (const peer of peers) if (peer !== holder) peer.close();
    if (holder || withdraws) {
      await this.release();
      return holder;
    }
    await this.#take();
    return this;
  }

  /**
   * Waits until every guest has closed its connection to the lock, at most `limitMs`. Whoever comes meanwhile does not join:
   * it waits until the lock is released.
   */
  async awaitGuests(limitMs: number): Promise<void> {
    this.#announced = 'contending\nholding\n';
    const signal = AbortSignal.timeout(limitMs);
    // Each guest listens to it; without this Node warns of a leak at the eleventh.
    setMaxListeners(0, signal);
    await Promise.allSettled([...this.#watchers].map((socket) => once(socket, 'close', { signal })));
  }

  async release(): Promise<void> {
    if (!this.#server.listening) return;
    await rm(join(this.folder, this.name), { force: true });
    for (const socket of this.#watchers) socket.destroy();
    await close(this.#server);
  }

  /** Renames the socket only once it listens, so a lock file that refuses connections always means a dead process. */
  async #publish(): Promise<boolean> {
    const temporary = join(this.folder, `new-${randomBytes(6).toString('hex')}.sock`);
    await listen(this.#server, temporary);
    try {
      await rename(temporary, join(this.folder, this.name));
      return true;
    } catch (error) {
      await close(this.#server);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false; // A new holder removed it.
      throw error;
    }
  }

  async #findPeers(): Promise<LockPeer[]> {
    const names = (await readdir(this.folder)).filter((name) => LOCK_NAME.test(name) && name !== this.name);
    const peers = await Promise.all(names.map((name) => LockPeer.connect(this.folder, name)));
    return peers.filter((peer) => peer !== undefined);
  }

  /** Also removes temporary sockets that crashed contenders left. */
  async #take(): Promise<void> {
    this.announce('holding');
    const leftovers = (await readdir(this.folder)).filter((name) => TEMPORARY_NAME.test(name));
    await Promise.all(leftovers.map((name) => rm(join(this.folder, name), { force: true })));
  }

  #accept(socket: Socket): void {
    this.#watchers.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#watchers.delete(socket));
    socket.resume();
    socket.write(this.#announced);
  }

  announce(state: LockState): void {
    this.#announced += `${state}\n`;
    for (const socket of this.#watchers) socket.write(`${state}\n`);
  }
}

/** What the process behind a lock socket announces, one state a line, each once and in this order. */
type LockState = 'contending' | 'holding' | 'serving';

/** After this a silent process counts as the holder: it is alive, but busy, stopped or hanging. */
const CONTENTION_TIMEOUT_MS = 5_000;
/** A first start takes 5 to 10 s. */
const START_TIMEOUT_MS = 60_000;

/** Another live opener of the folder, in this process or another one, seen through its lock socket. */
export class LockPeer {
  #received = '';

  private constructor(
    readonly name: string,
    private readonly socket: Socket,
  ) {
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => void (this.#received += text));
    socket.on('error', () => socket.destroy());
  }

  /** Undefined if no process listens on the socket; the socket file of a dead process is removed. */
  static async connect(folder: string, name: string): Promise<LockPeer | undefined> {
    const path = join(folder, name);
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return new LockPeer(name, socket);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The server closed before it accepted this connection.
      if (code === 'ECONNRESET') return LockPeer.connect(folder, name);
      if (code === 'ECONNREFUSED') await rm(path, { force: true });
      // Any other failure proves nothing.
      else if (code !== 'ENOENT') throw error;
      return undefined;
    }
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

  /** The connection, which a guest keeps until it closes, does not keep its process alive. */
  unref(): void {
    this.socket.unref();
  }

  get isClosed(): boolean {
    return this.socket.closed;
  }

  close(): void {
    this.socket.destroy();
  }

  async #announces(state: LockState, timeoutMs: number, onTimeout: boolean): Promise<boolean> {
    const signal = AbortSignal.timeout(timeoutMs);
    while (!this.#received.includes(state)) {
      if (this.isClosed) return false;
      if (signal.aborted) return onTimeout;
      const changes = ['data', 'close'].map((event) => once(this.socket, event, { signal }));
      await Promise.race(changes).catch(() => undefined);
    }
    return true;
  }
}

export async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
}

export function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
