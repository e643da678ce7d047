import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { transformFileSync } from '@swc/core';

/** The first version whose schema and job formats later versions keep. */
export const RELEASED = '0.2.0';
const COMMIT = '869bc002cd6f9f0add9e5576f5046a3982cb070e';

/** Below node_modules, so that its imports find the packages of this checkout. */
const CACHE = resolve('node_modules/.cache');
const FOLDER = join(CACHE, `usher-${RELEASED}`);

/** The entry points of version 0.2.0, as `npm start` and `usher` run them. */
export interface ReleasedBuild {
  main: string;
  cli: string;
}

/** Builds version 0.2.0 from its commit, once for this checkout. */
export function releasedBuild(): ReleasedBuild {
  if (!existsSync(FOLDER)) build();
  return { main: join(FOLDER, 'dist/main.js'), cli: join(FOLDER, 'dist/cli.js') };
}

/** In a folder of its own, which then gets its name: several test processes may need it at the same time. */
function build(): void {
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'building-'));
  try {
    execFileSync('tar', ['-x', '-C', folder], { input: source() });
    const config = join(folder, '.swcrc');
    compile(join(folder, 'src'), join(folder, 'dist'), config);
    compile(join(folder, 'packages/receiver/src'), join(folder, 'packages/receiver/dist'), config);
    renameSync(folder, FOLDER);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    if (!existsSync(FOLDER)) throw error;
  }
}

function source(): Buffer {
  const parts = ['src', 'packages/receiver', 'package.json', '.swcrc'];
  try {
    return execFileSync('git', ['archive', COMMIT, ...parts], { maxBuffer: 2 ** 28, stdio: 'pipe' });
  } catch (cause) {
    throw new Error(`the commit of ${RELEASED} (${COMMIT}) is missing; fetch the history: git fetch --unshallow`, {
      cause,
    });
  }
}

function compile(from: string, to: string, configFile: string): void {
  for (const file of readdirSync(from, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const target = join(to, file.replace(/ts$/, 'js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, transformFileSync(join(from, file), { configFile }).code);
  }
}
