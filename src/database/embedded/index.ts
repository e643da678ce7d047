import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { StartUpError } from '../../values/start-up-error.js';
import {
  openSocketFolder,
  type PGlite,
  prepareFolder,
  type SocketFolder,
  startPGlite,
  UnusableFolderError,
} from './folder/data-folder.js';
import { close, FolderLock, listen, type LockPeer } from './folder/folder-lock.js';
import { Multiplexer } from './session/multiplexer.js';

export class FolderInUseError extends StartUpError {
  constructor(
    readonly folder: string,
    readonly pid: number,
  ) {
    const user = pid === process.pid ? 'already open in this process' : `in use by process ${pid}`;
    super(`The data folder ${folder} is ${user}: close it there first, or choose another folder`);
  }
}

/** Every setting is given, so that the environment's PG* variables cannot redirect a connection. */
const BASE_OPTIONS = { user: 'postgres', database: 'postgres', port: 5432, ssl: false } as const;

/** How long a command that runs the database waits for the commands beside it. */
export const GUESTS_LIMIT_MS = 10_000;

export interface OpenOptions {
  /** Gets a line about what takes time. */
  log?: (message: string) => void;
  /** How long `close()` of the owner lets guests finish; default 0. */
  guestsLimitMs?: number;
}

export interface EmbeddedPostgres {
  /** 'owner' runs PGlite in this process; 'guest' uses the process that does. */
  readonly role: 'owner' | 'guest';
  /** Options for pg.Pool and pg.Client, and for TypeORM's `extra`. */
  readonly connection: typeof BASE_OPTIONS & ({ readonly stream: () => Duplex } | { readonly host: string });
  /** Ends every connection. The owner also disconnects the guests that are left, closes PGlite and releases the folder. */
  close(): Promise<void>;
}

/** 'own' runs the database here or throws FolderInUseError; 'join' uses the process that already runs it, if any. */
export async function openEmbeddedPostgres(
  folder: string,
  mode: 'own' | 'join',
  options: OpenOptions = {},
): Promise<EmbeddedPostgres> {
  const path = await prepareFolder(folder);
  const sockets = await openSocketFolder(path);
  try {
    return await open(path, sockets, mode, options);
  } catch (error) {
    await sockets.close();
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'listen') throw error;
    throw new UnusableFolderError(`The data folder ${path} cannot hold a Unix socket (${code}); choose a local folder`);
  }
}

async function open(
  folder: string,
  sockets: SocketFolder,
  mode: 'own' | 'join',
  options: OpenOptions,
): Promise<EmbeddedPostgres> {
  for (;;) {
    const lock = await FolderLock.acquire(sockets.path);
    if (lock instanceof FolderLock) return openAsOwner(folder, sockets, lock, options);
    if (mode === 'join' && (await lock.isServing())) return guest(sockets, lock);
    const isInUse = mode === 'own' || !lock.isClosed;
    lock.close();
    if (isInUse) throw new FolderInUseError(folder, lock.pid);
  }
}

/** It keeps its connection to the lock, so that the owner can wait for it. */
function guest(sockets: SocketFolder, lock: LockPeer): EmbeddedPostgres {
  lock.unref();
  return {
    role: 'guest',
    connection: { ...BASE_OPTIONS, host: sockets.path },
    close: once(() => {
      lock.close();
      return sockets.close();
    }),
  };
}

async function openAsOwner(
  folder: string,
  sockets: SocketFolder,
  lock: FolderLock,
  { log = () => undefined, guestsLimitMs = 0 }: OpenOptions,
): Promise<EmbeddedPostgres> {
  let db: PGlite | undefined;
  try {
    db = await startPGlite(folder, log);
    return await serve(db, sockets, lock, guestsLimitMs);
  } catch (error) {
    await db?.close();
    await lock.release();
    throw error;
  }
}

async function serve(
  db: PGlite,
  sockets: SocketFolder,
  lock: FolderLock,
  guestsLimitMs: number,
): Promise<EmbeddedPostgres> {
  const multiplexer = await Multiplexer.over(db);
  const server = createServer((socket) => multiplexer.attach(socket));
  const path = join(sockets.path, '.s.PGSQL.5432');
  await rm(path, { force: true }); // A crashed owner leaves its socket file.
  await listen(server, path);
  await chmod(path, 0o600);
  lock.announce('serving');
  return {
    role: 'owner',
    connection: { ...BASE_OPTIONS, stream: () => multiplexer.createStream() },
    close: once(async () => {
      if (guestsLimitMs > 0) await lock.awaitGuests(guestsLimitMs);
      const serverClosed = close(server);
      await multiplexer.close();
      try {
        if (!multiplexer.hasCrashed) await db.close();
      } finally {
        await multiplexer.destroyStreams();
        await serverClosed;
        await lock.release();
        await sockets.close();
      }
    }),
  };
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= action());
}
