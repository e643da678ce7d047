import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { build, BUILT } from './build.mjs';

/** Once a run: the code for child processes, and a migrated embedded folder that tests copy. */
export default async function setup() {
  await build();
  const folder = mkdtempSync(join(tmpdir(), 'usher-test-'));
  process.env.USHER_TEST_FOLDER = folder;
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DATABASE_URL: `embedded:${join(folder, 'template')}` };
  execFileSync(process.execPath, [join(BUILT, 'bin/cli.js'), 'migrate'], { env, stdio: 'ignore' });
}
