/**
 * Runs a program of the tests with the sources as they are: node test/bundled.mjs test/simulation/run.ts --seeds 10
 * It is made one module first. With tsx, a class of `src` that both a test and another file of `src` load would exist twice.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';
import { COMMON_JS, ROOT } from './runner/build.mjs';

const [program, ...args] = process.argv.slice(2);
// Beside the program, because it finds files by its own path.
const outfile = join(ROOT, program.replace(/\.ts$/, `.${process.pid}.mjs`));
try {
  await esbuild.build({
    entryPoints: [join(ROOT, program)],
    outfile,
    bundle: true,
    packages: 'external',
    alias: { 'usher-receiver': join(ROOT, 'packages/receiver/src/index.ts') },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    sourcemap: 'inline',
    banner: { js: COMMON_JS },
  });
  await esbuild.stop();
  process.argv = [process.argv[0], outfile, ...args];
  await import(pathToFileURL(outfile));
} finally {
  rmSync(outfile, { force: true });
}
