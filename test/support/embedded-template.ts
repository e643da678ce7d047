import {
  closeSync,
  existsSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

/** Postgres never writes to these two databases, so the copies share their files. */
const SHARED = /^postgres\/base\/[14]\//;
const BLOCK = Buffer.alloc(65_536);

interface Part {
  path: string;
  kind: 'folder' | 'shared' | Buffer;
}

/** The migrated database that the run has made (test/runner/global-setup.mjs), read once by a process. */
let parts: Part[] | undefined;

const template = (): string => join(process.env.USHER_TEST_FOLDER ?? '', 'template');

function read(inner: string): Part[] {
  return readdirSync(join(template(), inner), { withFileTypes: true }).flatMap((entry): Part[] => {
    const path = join(inner, entry.name);
    if (entry.isDirectory()) return [{ path, kind: 'folder' }, ...read(path)];
    if (SHARED.test(path)) return [{ path, kind: 'shared' }];
    return [{ path, kind: readFileSync(join(template(), path)) }];
  });
}

/** Makes `folder` an embedded database with Usher's tables. A start of Postgres without one takes seconds. */
export function copyTemplate(folder: string): void {
  parts ??= read('');
  for (const { path, kind } of parts) {
    const target = join(folder, path);
    if (kind === 'folder') mkdirSync(target, { recursive: true, mode: 0o700 });
    else if (kind !== 'shared') writeSparse(target, kind);
    else if (!existsSync(target)) linkSync(join(template(), path), target);
  }
}

/** The folders that no test uses any more. */
const folders: string[] = [];

/**
 * Returns a folder that is a copy of the template. It has the files of an earlier one where there is one: ext4 takes
 * longer to make files anew, shortly after as many were deleted, than Usher to start.
 */
export function takeFolder(): string {
  const folder = folders.pop();
  if (!folder) {
    const made = mkdtempSync(join(process.env.USHER_TEST_FOLDER ?? '', 'database-'));
    copyTemplate(made);
    return made;
  }
  copyTemplate(folder);
  const known = new Set(parts!.map(({ path }) => path));
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (!known.has(path)) rmSync(join(folder, path), { recursive: true, force: true });
  return folder;
}

/** Nothing may still use the folder. */
export function returnFolder(folder: string): void {
  folders.push(folder);
}

/** Without the zeros at the end: a segment of the write-ahead log is 16 MB of them. */
function writeSparse(path: string, bytes: Buffer): void {
  let end = bytes.length;
  while (end >= BLOCK.length && bytes.subarray(end - BLOCK.length, end).equals(BLOCK)) end -= BLOCK.length;
  const file = openSync(path, 'w');
  writeSync(file, bytes, 0, end);
  ftruncateSync(file, bytes.length);
  closeSync(file);
}
