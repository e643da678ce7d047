import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';
import { StartUpError } from '../../values/start-up-error.js';
import { prepareFolder, UnusableFolderError } from './data-folder.js';
import { FolderLock } from './folder-lock.js';
import { Multiplexer } from './multiplexer.js';
import { openSocketFolder, type SocketFolder } from './socket-folder.js';
import { startPGlite } from './start-pglite.js';
import { close, listen } from './unix-socket.js';

export class FolderInUseError extends StartUpError {
  constructor(
    readonly folder: string,
    readonly pid: number,
  ) {
    const who = pid === process.pid ? 'already open in this process' : `in use by process ${pid}`;
    super(`The data folder ${folder} is ${who}: close it there first, or choose another folder`);
  }
}

/** Everything is set, so that the PG* variables of the environment cannot lead elsewhere. */
const BASICS = { user: 'postgres', database: 'postgres', port: 5432, ssl: false } as const;

export type EmbeddedConnection = typeof BASICS & ({ readonly stream: () => Duplex } | { readonly host: string });

export interface EmbeddedPostgres {
  /** 'owner' runs PGlite in this process; 'guest' talks to the process that does. */
  readonly role: 'owner' | 'guest';
  /** For pg.Pool and pg.Client, and TypeORM's `extra`. */
  readonly connection: EmbeddedConnection;
  /** Ends every connection; the owner also ends its guests', closes PGlite and frees the folder. */
  close(): Promise<void>;
}

/** 'own' runs the database here or throws FolderInUseError; 'join' uses the process that runs it, if there is one. */
export async function openEmbeddedPostgres(folder: string, mode: 'own' | 'join'): Promise<EmbeddedPostgres> {
  const path = await prepareFolder(folder);
  const sockets = await openSocketFolder(path);
  try {
    return await open(path, sockets, mode);
  } catch (error) {
    await sockets.close();
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'listen') throw error;
    throw new UnusableFolderError(`The data folder ${path} cannot hold a Unix socket (${code}): choose a local folder`);
  }
}

async function open(folder: string, sockets: SocketFolder, mode: 'own' | 'join'): Promise<EmbeddedPostgres> {
  for (;;) {
    const lock = await FolderLock.take(sockets.path);
    if (lock instanceof FolderLock) return own(folder, sockets, lock);
    try {
      if (mode === 'own') throw new FolderInUseError(folder, lock.pid);
      if (await lock.serves()) return guest(sockets);
      if (!lock.isGone) throw new FolderInUseError(folder, lock.pid);
    } finally {
      lock.close();
    }
  }
}

function guest(sockets: SocketFolder): EmbeddedPostgres {
  return { role: 'guest', connection: { ...BASICS, host: sockets.path }, close: once(() => sockets.close()) };
}

async function own(folder: string, sockets: SocketFolder, lock: FolderLock): Promise<EmbeddedPostgres> {
  let db: PGlite | undefined;
  try {
    db = await startPGlite(folder);
    const multiplexer = await Multiplexer.over(db);
    const server = await serve(multiplexer, join(sockets.path, '.s.PGSQL.5432'));
    lock.serving();
    const closeAll = once(() => closeOwner(db as PGlite, multiplexer, server, sockets, lock));
    return { role: 'owner', connection: { ...BASICS, stream: () => multiplexer.stream() }, close: closeAll };
  } catch (error) {
    await db?.close();
    await lock.release();
    throw error;
  }
}

async function serve(multiplexer: Multiplexer, path: string): Promise<Server> {
  await rm(path, { force: true }); // left by a crash
  const server = createServer((socket) => multiplexer.attach(socket));
  await listen(server, path);
  await chmod(path, 0o600);
  return server;
}

async function closeOwner(
  db: PGlite,
  multiplexer: Multiplexer,
  server: Server,
  sockets: SocketFolder,
  lock: FolderLock,
): Promise<void> {
  const serverClosed = close(server);
  await multiplexer.close();
  try {
    await db.close();
  } finally {
    await multiplexer.endStreams();
    await serverClosed;
    await lock.release();
    await sockets.close();
  }
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= action());
}
