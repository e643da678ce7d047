import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** sun_path, less its closing zero. */
const PATH_LIMIT = process.platform === 'linux' ? 107 : 103;
/** The longest name that is bound in the folder; see folder-lock.ts. */
const LONGEST_NAME = 32;

/** A path of the folder that is short enough for the Unix sockets in it. */
export interface SocketFolder {
  readonly path: string;
  close(): Promise<void>;
}

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
  return Buffer.byteLength(folder) + 1 + LONGEST_NAME <= PATH_LIMIT;
}
