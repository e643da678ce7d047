import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { transformFileSync } from '@swc/core';
import * as esbuild from 'esbuild';

export const ROOT = join(import.meta.dirname, '../..');
/** `src`, `test` and the receiver kit as they stand now; below node_modules, so that their imports resolve. */
export const BUILT = join(ROOT, 'node_modules/.cache/usher-test');
const KIT = 'packages/receiver';

/** Compiles the code under test and the tests: neither they nor the processes they start ever run a stale build. */
export async function build() {
  rmSync(BUILT, { recursive: true, force: true });
  compile('src');
  compile('test', 'test', 'es6');
  compile(`${KIT}/src`, `${KIT}/dist`);
  write('package.json', '{ "type": "commonjs" }');
  for (const folder of ['bin', 'modules', 'test']) write(`${folder}/package.json`, '{ "type": "module" }');
  for (const name of ['package.json', 'README.md', 'LICENSE', 'test-vectors.json'])
    cpSync(join(ROOT, KIT, name), join(BUILT, KIT, name));
  cpSync(join(ROOT, KIT, 'package.json'), join(BUILT, KIT, 'dist/manifest.json'));
  write('node_modules/@jest/globals/package.json', '{ "type": "module", "exports": "./index.js" }');
  write('node_modules/@jest/globals/index.js', GLOBALS);
  // As tests name it. Not a link: after a stat of a pipe, Node 20 may load a linked package a second time, without its exports.
  write('node_modules/usher-receiver/package.json', '{ "type": "commonjs" }');
  write('node_modules/usher-receiver/index.js', `module.exports = require('../../${KIT}/dist/index.js');\n`);
  await bundle();
}

/** Compiles one file of the code again. Processes then load the modules one by one, because the bundle is out of date. */
export function rebuild(file) {
  compileFile(file, file.replace(`${KIT}/src`, `${KIT}/dist`));
  for (const entry of ENTRIES) write(join('bin', entry), `import '../src/${entry}';\n`);
}

/** The modules that processes start from. */
const ENTRIES = ['cli.js', 'main.js'];

/**
 * What processes start from: in few files, for they start by the hundred, and 2,000 modules take longer to find than
 * to run. The packed tarball, whose modules are apart, has a test of its own (test/package.mjs).
 */
async function bundle() {
  // Only ES modules can be split.
  compile('src', 'modules', 'es6');
  await esbuild.build({
    entryPoints: ENTRIES.map((entry) => join(BUILT, 'modules', entry)),
    outdir: join(BUILT, 'bin'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
    banner: { js: COMMON_JS },
    plugins: [{ name: 'leave-out', setup: leaveOut }],
  });
  for (const name of ['console.css', 'console.js'])
    cpSync(join(ROOT, 'src/server/console/frame', name), join(BUILT, 'bin', name));
  await esbuild.stop();
  rmSync(join(BUILT, 'modules'), { recursive: true });
}

/** They read files of their own. */
const LEFT_OUT =
  /^(@electric-sql\/pglite|@node-rs\/argon2|@bull-board\/(fastify|ui)|@fastify\/static|@opentelemetry\/|pino-pretty)/;

/** These, and those that others ask for in vain, are not bundled. */
function leaveOut(build) {
  build.onResolve({ filter: /^[^./]/ }, async ({ path, resolveDir, importer, kind, pluginData }) => {
    if (pluginData === 'asked') return undefined;
    if (LEFT_OUT.test(path)) return { external: true };
    const found = await build.resolve(path, { resolveDir, importer, kind, pluginData: 'asked' });
    return found.errors.length > 0 ? { external: true } : found;
  });
}

/** The first line: esbuild's chunks run Nest's decorators before what they need. */
export const COMMON_JS = `
import 'reflect-metadata';
import { createRequire as createRequireOfBundle } from 'node:module';
import { fileURLToPath as pathOfBundle } from 'node:url';
const require = createRequireOfBundle(import.meta.url);
const __filename = pathOfBundle(import.meta.url);
const __dirname = import.meta.dirname;
`;

/** The console's style and script, which are sent as they are. */
const ASSET = /\/console\.(css|js)$/;

function compile(folder, target = folder, type = 'commonjs') {
  for (const source of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }))
    if (source.endsWith('.ts')) compileFile(join(folder, source), join(target, source), type);
    else if (ASSET.test(source)) cpSync(join(ROOT, folder, source), join(BUILT, target, source));
}

function compileFile(source, target, type = 'commonjs') {
  const { code } = transformFileSync(join(ROOT, source), {
    configFile: join(ROOT, '.swcrc'),
    module: { type, exportInteropAnnotation: true },
  });
  write(target.replace(/ts$/, 'js'), code);
}

function write(file, text) {
  const target = join(BUILT, file);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

/** What tests import from @jest/globals, which itself works in Jest's sandbox alone. */
const GLOBALS = `
import { ModuleMocker } from 'jest-mock';
export { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } from 'jest-circus';
export { jestExpect as expect } from '@jest/expect';
export const jest = new ModuleMocker(globalThis);
`;
