/**
 * What others get: packs Usher, installs the tarball into an empty folder elsewhere, runs the demo there, and builds and
 * tests examples/order-service against it. Needs a package registry, MariaDB, Redis and Postgres, hence no part of
 * `npm test`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const EXAMPLE = join(ROOT, 'examples/order-service');
const INSTALL = ['install', '--no-audit', '--no-fund', '--loglevel=error'];
const TARBALL_MOST_BYTES = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'usher-package-'));
try {
  const { filename, files, size } = pack();
  checkContents(files, size);
  install(filename);
  runDemo();
  testExample(filename);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function step(text) {
  process.stdout.write(`- ${text}\n`);
}

/** No settings of the project that calls this reach npm in the folder; nor does anything of its own Usher. */
function run(command, args, cwd = folder) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|USHER_|DATABASE_|QUEUE_|REDIS_)/.test(name),
  );
  const env = Object.fromEntries(inherited);
  const { status, stdout } = spawnSync(command, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}`);
}

function pack() {
  step('npm pack');
  const told = run('npm', ['pack', '--json', '--pack-destination', folder], ROOT);
  return JSON.parse(told.slice(told.indexOf('[\n')))[0];
}

function checkContents(files, size) {
  step(`${files.length} files, ${size} bytes: what package.json promises, and nothing else`);
  const paths = new Set(files.map(({ path }) => path));
  const { bin, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const promised = [bin, ...Object.values(exports)].flatMap((entry) =>
    typeof entry === 'string' ? [entry] : Object.values(entry),
  );
  for (const path of promised) assert.ok(paths.has(path.replace(/^\.\//, '')), `${path} is missing`);
  const other = [...paths].filter((path) => !/^(package\.json|README\.md|LICENSE|dist\/.+\.(js|d\.ts))$/.test(path));
  assert.deepEqual(other, []);
  assert.deepEqual(
    [...paths].filter((path) => /(^|\/)test\/|\.(test|spec)\./.test(path)),
    [],
  );
  assert.ok(size < TARBALL_MOST_BYTES, `the tarball has ${size} bytes`);
}

function install(filename) {
  step('npm install of the tarball, in an empty folder');
  run('npm', [...INSTALL, `./${filename}`]);
  // Were `prepare` run there, it would need these.
  for (const name of ['@nestjs/cli', 'typescript', 'jest']) {
    assert.ok(!existsSync(join(folder, 'node_modules', name)), `${name} is installed`);
  }
}

function runDemo() {
  step('npx usher demo');
  const { ok, steps } = JSON.parse(run('npx', ['--no', '--', 'usher', 'demo', '--json']));
  assert.ok(ok, JSON.stringify(steps, null, 2));
}

function testExample(filename) {
  step('examples/order-service: npm install, tsc, its tests');
  const isOwn = (path) => !['node_modules', 'dist'].includes(basename(path)) && !path.endsWith('.tgz');
  cpSync(EXAMPLE, folder, { recursive: true, filter: isOwn });
  cpSync(join(folder, filename), join(folder, 'usher.tgz'));
  run('npm', INSTALL);
  process.stdout.write(run('npm', ['test', '--silent']));
}
