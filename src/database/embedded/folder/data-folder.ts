import { existsSync } from 'node:fs';
import { access, chmod, constants, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StartUpError } from '../../../values/start-up-error.js';

/** A fault of the data folder; the message says what to do. */
export class UnusableFolderError extends StartUpError {}

/** Creates the folder if necessary and returns its real path. It is writable and closed to other users (mode 0700). */
export async function prepareFolder(folder: string): Promise<string> {
  try {
    await createFolder(resolve(folder));
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    const path = await realpath(folder);
    await restrictToOwner(path);
    return path;
  } catch (error) {
    if (error instanceof UnusableFolderError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new UnusableFolderError(
      `The data folder ${folder} cannot be used (${code}): make it a folder that this user may write to, or choose another one`,
    );
  }
}

/** Creates one level at a time: Node's `recursive` option never returns below /proc, which refuses new folders. */
async function createFolder(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) await createFolder(dirname(folder));
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // EEXIST: another process created it first.
    if (error.code !== 'EEXIST') throw error;
  });
}

/** Refuses to change the mode of a shared folder that holds other files, such as /tmp or a home directory. */
async function restrictToOwner(path: string): Promise<void> {
  if (((await stat(path)).mode & 0o077) === 0) return;
  const isDatabaseFolder = existsSync(join(path, 'postgres')) || (await readdir(path)).length === 0;
  if (!isDatabaseFolder) {
    throw new UnusableFolderError(
      `The data folder ${path} holds other files and is accessible to other users; choose an empty folder, or set its mode to 0700`,
    );
  }
  await chmod(path, 0o700);
}
