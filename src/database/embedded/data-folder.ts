import { existsSync } from 'node:fs';
import { access, chmod, constants, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StartUpError } from '../../values/start-up-error.js';

/** The folder's real path, ready for a database: ours alone (mode 0700), and writable. */
export async function prepareFolder(folder: string): Promise<string> {
  try {
    await make(resolve(folder));
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    const path = await realpath(folder);
    await closeToOthers(path);
    return path;
  } catch (error) {
    if (error instanceof UnusableFolderError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new UnusableFolderError(
      `The data folder ${folder} cannot be used (${code}): make it a folder that this user may write to, or choose another one`,
    );
  }
}

/** Level by level: Node's own `recursive` never ends below a folder that takes no folders, as /proc is. */
async function make(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) await make(dirname(folder));
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // Another process was quicker.
    if (error.code !== 'EEXIST') throw error;
  });
}

export class UnusableFolderError extends StartUpError {}

/** A folder that others can read and that holds other things (a home, /tmp) is not ours to close. */
async function closeToOthers(path: string): Promise<void> {
  if (((await stat(path)).mode & 0o077) === 0) return;
  const isOurs = existsSync(join(path, 'postgres')) || (await readdir(path)).length === 0;
  if (!isOurs) {
    throw new UnusableFolderError(
      `The data folder ${path} holds other files and is open to other users: choose an empty folder, or make it mode 0700`,
    );
  }
  await chmod(path, 0o700);
}
