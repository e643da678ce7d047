import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { build, BUILT } from './build.mjs';

/** A run holds up to 1 GB in its folder. Docker gives a container 64 MB here. */
const ROOM_BYTES = 4e9;

/** Databases are made and deleted by the hundred, which takes a disk's file system longer than one in memory. */
function parentFolder() {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    if (bavail * bsize > ROOM_BYTES) return '/dev/shm';
  } catch {
    // Not on this system.
  }
  return tmpdir();
}

/** Once a run: the code for child processes, and a migrated embedded folder that tests copy. */
export default async function setup() {
  if (!process.env.USHER_TEST_IS_BUILT) await build();
  const folder = mkdtempSync(join(parentFolder(), 'usher-test-'));
  process.env.USHER_TEST_FOLDER = folder;
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DATABASE_URL: `embedded:${join(folder, 'template')}` };
  // The optimising compiler of WebAssembly costs more than it saves a process that only makes a database.
  execFileSync(process.execPath, ['--liftoff-only', join(BUILT, 'bin/cli.js'), 'migrate'], { env, stdio: 'ignore' });
}
