import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { transformFileSync } from '@swc/core';

const ROOT = join(import.meta.dirname, '../..');
/** Where child processes of tests find the code under test; below node_modules, so that its imports resolve. */
export const BUILT = join(ROOT, 'node_modules/.cache/usher-test');

/** Compiles `src` as it stands now: tests that start processes never run a stale build. */
export function build() {
  rmSync(BUILT, { recursive: true, force: true });
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  for (const source of sources) {
    const target = join(BUILT, source.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, transformFileSync(join(ROOT, 'src', source), { configFile: join(ROOT, '.swcrc') }).code);
  }
  writeFileSync(join(BUILT, 'package.json'), '{ "type": "module" }');
  buildForRequire('content-disposition/dist/index.js', 'content-disposition.cjs');
}

/** Jest on Node 20 cannot require() an ES module, as @fastify/static does with this one; Node itself can. */
function buildForRequire(source, target) {
  const { code } = transformFileSync(join(ROOT, 'node_modules', source), {
    swcrc: false,
    module: { type: 'commonjs' },
  });
  writeFileSync(join(BUILT, target), code);
}
