/** Builds the ES module, the CommonJS module and the types of both: `node build.mjs [target folder, default dist]`. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const [target = join(import.meta.dirname, 'dist')] = process.argv.slice(2).map((folder) => resolve(folder));

function compile(config, outDir) {
  execFileSync(process.execPath, [TSC, '-p', join(import.meta.dirname, config), '--outDir', outDir], {
    stdio: 'inherit',
  });
}

rmSync(target, { recursive: true, force: true });
compile('tsconfig.json', target);
compile('tsconfig.cjs.json', join(target, 'cjs'));
// The package is `type: module`; this folder is not.
writeFileSync(join(target, 'cjs/package.json'), '{ "type": "commonjs" }\n');
