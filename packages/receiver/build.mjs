/** Builds the module and its types: `node build.mjs [target folder, default dist]`. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const [target = join(import.meta.dirname, 'dist')] = process.argv.slice(2).map((folder) => resolve(folder));

rmSync(target, { recursive: true, force: true });
execFileSync(process.execPath, [TSC, '-p', import.meta.dirname, '--outDir', target], { stdio: 'inherit' });
// Usher serves the package. In its own tarball a second package.json would confuse other tools.
copyFileSync(join(import.meta.dirname, 'package.json'), join(target, 'manifest.json'));
