import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The size of sun_path without its terminating zero, in bytes. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;
/** The longest socket name in the folder, in bytes; see folder-lock.ts. */
const MAX_NAME_BYTES = 32;

/** A path of the data folder that is short enough for the Unix sockets in it. */
export interface SocketFolder {
  readonly path: string;
  close(): Promise<void>;
}

/** Uses a temporary symbolic link if the folder's own path is too long. */
export async function openSocketFolder(folder: string): Promise<SocketFolder> {
  if (fits(folder)) return { path: folder, close: async () => undefined };
  const parent = await mkdtemp(join(shortTemporaryFolder(), 'usher-'));
  const path = join(parent, 'd');
  await symlink(folder, path);
  return { path, close: () => rm(parent, { recursive: true, force: true }) };
}

function shortTemporaryFolder(): string {
  return fits(join(tmpdir(), 'usher-XXXXXX', 'd')) ? tmpdir() : '/tmp';
}

function fits(folder: string): boolean {
  return Buffer.byteLength(folder) + 1 + MAX_NAME_BYTES <= MAX_PATH_BYTES;
}

export async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
}

export function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
