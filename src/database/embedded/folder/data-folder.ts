import { existsSync } from 'node:fs';
import {
  access,
  chmod,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { loadPackage, StartUpError } from '../../../values/start-up-error.js';

/** A fault of the data folder; the message says what to do. */
export class UnusableFolderError extends StartUpError {}

/** Creates the folder if necessary and returns its real path. It is writable and closed to other users (mode 0700). */
export async function prepareFolder(folder: string): Promise<string> {
  // Loaded first: if the package is missing, no folder is created.
  if (!existsSync(join(folder, 'postgres'))) await loadPGlite();
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

const START_PARAMETERS = [
  // 120 MB less memory than with the default
  '-c',
  'shared_buffers=16MB',
  '-c',
  'timezone=UTC',
  // with the default of 2 MB, V8's stack overflows first and the session is lost
  '-c',
  'max_stack_depth=200kB',
];
const UNFINISHED = 'postgres-unfinished-';

/** Starts PGlite on `<folder>/postgres`, which it creates and logs if necessary. The caller holds the folder's lock. */
export async function startPGlite(folder: string, log: (message: string) => void): Promise<PGlite> {
  const data = join(folder, 'postgres');
  if (!existsSync(join(data, 'PG_VERSION'))) {
    log(`creating the embedded database in ${data}; this takes some seconds, once`);
    await initialise(folder, data);
  }
  return start(data);
}

/** Creates the database under another name and then renames it, so that a crash never leaves half a database. */
async function initialise(folder: string, data: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(UNFINISHED)) await rm(join(folder, name), { recursive: true, force: true });
  }
  const unfinished = await mkdtemp(join(folder, UNFINISHED));
  await (await start(unfinished)).close();
  await rename(unfinished, data).catch((error: NodeJS.ErrnoException) => {
    throw new UnusableFolderError(`${data} is not a database (${error.code}); move it away and start again`);
  });
}

const loadPGlite = () =>
  loadPackage(
    '@electric-sql/pglite',
    () => import('@electric-sql/pglite'),
    'or set DATABASE_URL (database.url) to a server',
  );

export type PGlite = InstanceType<Awaited<ReturnType<typeof loadPGlite>>['PGlite']>;

async function start(dataDir: string): Promise<PGlite> {
  const { PGlite } = await loadPGlite();
  const startParams = [...PGlite.defaultStartParams, ...START_PARAMETERS];
  const stderr: string[] = [];
  let isStarting = true;
  const onStderr = (line: string): boolean => {
    if (isStarting) stderr.push(line);
    return false;
  };
  try {
    return await PGlite.create({ dataDir, startParams, onStderr });
  } catch (error) {
    throw new UnusableFolderError(await explain(dataDir, stderr.join(' '), error));
  } finally {
    isStarting = false;
  }
}

/** Why PGlite did not start, and what to do; `stderr` is what it printed. */
export async function explain(dataDir: string, stderr: string, error: unknown): Promise<string> {
  const [, supported] = /not compatible with this version ([\d.]+)/.exec(stderr) ?? [];
  if (supported) {
    const found = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
    return `The database in ${dataDir} was made by Postgres ${found} and this is ${supported}; use the release that made it, or move the folder away to start with an empty database`;
  }
  const [fatal = textOf(error)] = /(?:FATAL|PANIC):.*/.exec(stderr) ?? [];
  if (/No space left/.test(fatal)) return `The disk of ${dataDir} is full; make room on it and start again`;
  return `The database in ${dataDir} does not start: ${fatal}. Move the folder away to start with an empty database`;
}

/** Errors of PGlite's file system are no `Error` and have only the number of WASI. */
function textOf(error: unknown): string {
  const { errno } = error as { errno?: number };
  if (errno === 51) return 'No space left on device';
  return error instanceof Error ? String(error) : JSON.stringify(error);
}
