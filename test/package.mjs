/**
 * Tests the packages as users get them, from the tarballs of `npm run pack`: uses that of the receiver kit alone; installs
 * that of Usher into an empty folder, runs the demo there, and builds and tests examples/order-service with it; then tests
 * two hosts of other kinds (test/hosts.mjs). With --floors it runs only the demo and examples/order-service, with the lowest
 * version of each peer dependency that package.json allows. It needs a package registry, MariaDB, Redis and Postgres, so
 * `npm test` does not run it.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { contentsOf, PACKAGES } from '../packages/tarballs.mjs';
import { runIn, testHost } from './hosts.mjs';

const ROOT = join(import.meta.dirname, '..');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const EXAMPLE = join(ROOT, 'examples/order-service');
const INSTALL = ['install', '--no-audit', '--no-fund', '--loglevel=error'];
const [KIT, USHER] = PACKAGES;
const VERIFY_VECTOR = `
  const headers = {
    'X-Timestamp': '1767225600',
    'X-Nonce-Str': 'aZ09bY18cX27dW36eV45fU54gT63hS72',
    'X-Signature': 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79',
  };
  const secret = '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo';
  console.log(JSON.stringify(kit.verifyNotification({ rawBody: '{}', headers, secret, now: 1_767_225_600_000 })));
`;
/** The newest versions below the lowest allowed ones. */
const TOO_OLD = { '@nestjs/common': '10', typeorm: '0.3.19', bullmq: '5.39' };
/** With the guides and the tarball of the receiver package that the server serves. */
const TARBALL_MOST_BYTES = 500_000;

const folder = mkdtempSync(join(tmpdir(), 'usher-package-'));
/** As in a checkout, because the example names its tarball by a relative path. */
const PACKED = join(folder, 'packed');
const APPLICATION = join(folder, 'examples/order-service');
mkdirSync(APPLICATION, { recursive: true });
try {
  packBoth();
  if (process.argv.includes('--floors')) {
    testFloors();
  } else {
    testReceiverKit();
    checkTypes();
    checkContents();
    install();
    verifyVector('nest-usher/receiver', APPLICATION);
    checkLinks();
    compareClasses();
    checkOneCopy();
    runDemo();
    testExample();
    testRefusals();
    for (const host of ['booking-api', 'esm-mariadb']) await testHost(host, folder);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function step(text) {
  process.stdout.write(`- ${text}\n`);
}

function run(command, args, cwd = APPLICATION) {
  return runIn(cwd, command, args);
}

function packBoth() {
  step('npm run pack');
  const printed = run('npm', ['run', '--silent', 'pack', '--', PACKED], ROOT);
  for (const { tarball } of PACKAGES) {
    assert.ok(existsSync(join(PACKED, tarball)), `${tarball} is missing`);
    assert.ok(printed.includes(`npm install ${join(PACKED, tarball)}\n`), printed);
  }
  assert.deepEqual(readdirSync(PACKED).sort(), PACKAGES.map(({ tarball }) => tarball).sort());
}

/** The kit's tarball alone, in an empty folder: the test vector by import and by require. */
function testReceiverKit() {
  const { files } = contentsOf(KIT);
  const expected = /^((package|test-vectors)\.json|README\.md|LICENSE|dist\/(commands\/)?[a-z-]+\.(js|d\.ts))$/;
  assert.deepEqual(
    files.map(({ path }) => path).filter((path) => !expected.test(path)),
    [],
  );
  const alone = join(folder, 'receiver');
  mkdirSync(alone);
  run('npm', [...INSTALL, '--prefix', alone, join(PACKED, KIT.tarball)], alone);
  const installed = readdirSync(join(alone, 'node_modules')).filter((name) => !name.startsWith('.'));
  assert.deepEqual(installed, ['usher-receiver']);
  verifyVector('usher-receiver', alone);
}

function verifyVector(name, cwd) {
  step(`${name}: the test vector, by import and by require`);
  for (const [type, line] of [
    ['module', `import * as kit from '${name}';`],
    ['commonjs', `const kit = require('${name}');`],
  ])
    assert.equal(run('node', [`--input-type=${type}`, '-e', line + VERIFY_VECTOR], cwd), '{}\n');
}

/** Every entry has types and a module for each way in which TypeScript and Node look for them. */
function checkTypes() {
  for (const { tarball } of PACKAGES) {
    step(`${tarball}: publint, and the types of its entries (attw)`);
    const path = join(PACKED, tarball);
    const bin = (name) => join(ROOT, 'node_modules/.bin', name);
    assert.match(run(bin('publint'), ['--strict', path]), /All good!/);
    run(bin('attw'), [path]);
  }
}

/** There is one implementation: an ES module and a CommonJS module of one application share its classes. */
function compareClasses() {
  step('import and require give the same exports');
  const compare = `
    const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);
    for (const entry of ['nest-usher', 'nest-usher/receiver', 'nest-usher/testing']) {
      const { default: all, ...named } = await import(entry);
      const required = require(entry);
      const names = Object.keys(required).filter((name) => required[name] === named[name]);
      console.log(entry, names.length > 0, names.length === Object.keys(required).length);
    }`;
  const lines = ['nest-usher', 'nest-usher/receiver', 'nest-usher/testing'].map((entry) => `${entry} true true\n`);
  assert.equal(run('node', ['--input-type=module', '-e', compare]), lines.join(''));
}

function checkContents() {
  const { files, size } = contentsOf(USHER);
  step(`${files.length} files, ${size} bytes: the files that package.json names, and no others`);
  const paths = new Set(files.map(({ path }) => path));
  const { bin, exports } = PACKAGE;
  const pathsIn = (entry) => (typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(pathsIn));
  const promised = [bin, exports].flatMap(pathsIn);
  for (const path of promised) assert.ok(paths.has(path.replace(/^\.\//, '')), `${path} is missing`);
  const expected =
    /^(bin\/usher\.mjs|package\.json|(packages\/receiver\/)?(README\.md|LICENSE|dist\/.+\.(js|d\.ts|css))|packages\/receiver\/(test-vectors|dist\/manifest)\.json|docs\/[a-z-]+\.(md|sh))$/;
  assert.deepEqual(
    [...paths].filter((path) => !expected.test(path)),
    [],
  );
  assert.deepEqual(
    [...paths].filter((path) => /(^|\/)test\/|\.(test|spec)\./.test(path)),
    [],
  );
  assert.ok(size < TARBALL_MOST_BYTES, `the tarball has ${size} bytes`);
}

function install() {
  step('npm install of the tarball, in an empty folder');
  run('npm', [...INSTALL, join(PACKED, USHER.tarball)]);
  // `prepare` needs these; it must not run there.
  for (const name of ['typescript', 'jest']) {
    assert.ok(!existsSync(join(APPLICATION, 'node_modules', name)), `${name} is installed`);
  }
  const optional = Object.keys(PACKAGE.peerDependenciesMeta);
  for (const name of optional)
    assert.ok(!existsSync(join(APPLICATION, 'node_modules', name)), `${name} is installed, though it is optional`);
  step('npm install of the optional packages');
  // @bull-board/fastify brings the version of @bull-board/api that it needs.
  const named = optional.filter((name) => name !== '@bull-board/api');
  run('npm', [...INSTALL, ...named.map((name) => `${name}@${PACKAGE.optionalVersions[name]}`)]);
}

/** `npm ls` itself fails if a peer is missing or has a version that Usher does not accept. */
function checkOneCopy() {
  step('npm ls: one copy of each peer');
  const names = Object.keys(PACKAGE.peerDependencies);
  const paths = run('npm', ['ls', '--all', '--parseable', ...names]).split('\n');
  for (const name of names) {
    const copies = new Set(paths.filter((path) => path.endsWith(`/node_modules/${name}`)));
    const least = name in PACKAGE.peerDependenciesMeta ? 0 : 1;
    assert.ok(copies.size >= least && copies.size <= 1, `${copies.size} copies of ${name}: ${[...copies].join(', ')}`);
  }
}

/** The pages of the package lead nowhere else than to its own files and to absolute addresses. */
function checkLinks() {
  step('links of the packed pages');
  const root = join(APPLICATION, 'node_modules/nest-usher');
  for (const page of ['README.md', ...PACKAGE.files.filter((path) => path.endsWith('.md'))]) {
    const links = [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)];
    for (const [, target] of links)
      assert.ok(existsSync(join(root, page, '..', target)), `${page} links to ${target}, which is not in the package`);
  }
}

function runDemo() {
  step('the installed command: usher demo');
  const { ok, steps } = JSON.parse(run('npx', ['--no', '--', 'usher', 'demo', '--json']));
  assert.ok(ok, JSON.stringify(steps, null, 2));
}

function copyExample() {
  const isOwn = (path) => !['node_modules', 'dist'].includes(basename(path));
  cpSync(EXAMPLE, APPLICATION, { recursive: true, filter: isOwn });
}

function testExample() {
  step('examples/order-service: npm install, tsc, its tests');
  copyExample();
  run('npm', INSTALL);
  checkOneCopy();
  process.stdout.write(run('npm', ['test', '--silent']));
}

function floorOf(range) {
  return /\d+\.\d+\.\d+/.exec(range)[0];
}

/** npm installs the lowest versions together without a complaint, and the example and the demo work with them. */
function testFloors() {
  copyExample();
  const ranges = { ...PACKAGE.peerDependencies, ...PACKAGE.optionalVersions };
  // The demo and the example keep jobs on Postgres, which BullMQ 5 cannot.
  ranges.bullmq = ranges.bullmq.split(' || ')[1];
  // Beside BullMQ 6, npm refuses a lower one: they exclude each other's versions of the optional peer redis.
  ranges.typeorm = '0.3.26';
  const peers = Object.entries(ranges).map(([name, range]) => [name, floorOf(range)]);
  const nest = floorOf(PACKAGE.peerDependencies['@nestjs/common']);
  const ofNest = { '@nestjs/platform-express': nest, '@nestjs/testing': nest, '@nestjs/config': '4.0.0' };
  const example = JSON.parse(readFileSync(join(APPLICATION, 'package.json'), 'utf8'));
  delete example.devDependencies['@nestjs/testing'];
  Object.assign(example.dependencies, Object.fromEntries(peers), ofNest);
  writeFileSync(join(APPLICATION, 'package.json'), JSON.stringify(example));
  step(`npm install of the lowest versions: ${peers.map(([name, version]) => `${name} ${version}`).join(', ')}`);
  run('npm', INSTALL);
  checkOneCopy();
  runDemo();
  step('examples/order-service: tsc, its tests');
  process.stdout.write(run('npm', ['test', '--silent']));
}

/** An application on an older version is told so by npm, instead of getting a second copy. */
function testRefusals() {
  for (const [name, version] of Object.entries(TOO_OLD)) {
    step(`npm refuses nest-usher beside ${name} ${version}`);
    const old = mkdtempSync(join(folder, 'old-'));
    const dependencies = { [name]: version, 'nest-usher': `file:${join(PACKED, USHER.tarball)}` };
    writeFileSync(join(old, 'package.json'), JSON.stringify({ dependencies }));
    const { status, stderr } = spawnSync('npm', [...INSTALL, '--package-lock-only'], { cwd: old, encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, /code ERESOLVE/);
    assert.match(stderr, /peer \S+@"[^"]+" from nest-usher@/);
  }
}
