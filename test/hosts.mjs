/**
 * Installs Usher's tarball into host applications of different kinds, and runs their tests. The first host is
 * examples/booking-api. Each other one is this application with the files of test/hosts/NAME in place of its own. There
 * `package.patch.json` and `tsconfig.patch.json` are merged into the application's (RFC 7386: null removes).
 *
 * node test/hosts.mjs               all hosts
 * node test/hosts.mjs NAME …        these hosts
 *
 * It needs a package registry, MariaDB, Redis and Postgres.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { pack, PACKAGES, ROOT } from '../packages/tarballs.mjs';
import { HOSTS } from './hosts/list.mjs';
import { mariadbUrl, postgresUrl, redisUrl } from './servers.mjs';

const EXAMPLE = join(ROOT, 'examples/booking-api');
const NPM_INSTALL = 'npm install --no-audit --no-fund --loglevel=error';
const PEERS = Object.entries(PACKAGES[1].manifest.peerDependencies).map(([name]) => name);

/** Installs, checks, builds, migrates and tests a host below `folder`, where `packed/` has the tarballs. */
export async function testHost(name, folder) {
  const { shape, database = 'postgres', install = NPM_INSTALL } = HOSTS[name];
  const startedAt = Date.now();
  const host = join(folder, 'examples', name);
  copyHost(name, host);
  const servers = await createServers(name, database);
  try {
    const scripts = ['build', 'migrate', 'test'].map((script) => `npm --silent run ${script}`);
    for (const command of [install, 'npx tsc --noEmit --skipLibCheck false', ...scripts]) {
      process.stdout.write(`  ${name}: ${command}\n`);
      const [program, ...args] = command.split(' ');
      const printed = runIn(host, program, args, servers.env);
      if (args.includes('test')) process.stdout.write(printed);
      if (command === install) checkOneCopy(host);
    }
  } finally {
    await servers.drop();
  }
  process.stdout.write(`- ${name}: ${shape} (${Math.round((Date.now() - startedAt) / 1000)} s)\n`);
}

/** Runs a command without the settings that npm and Usher have in the calling process. Returns what it printed. */
export function runIn(cwd, command, args, env = {}) {
  const inherited = Object.entries(process.env).filter(
    ([variable]) => !/^(npm_|USHER_|DATABASE_|QUEUE_|REDIS_)/.test(variable),
  );
  const { status, stdout } = spawnSync(command, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}`);
}

function copyHost(name, host) {
  const isOwn = (path) => !['node_modules', 'dist', 'package-lock.json'].includes(basename(path));
  cpSync(EXAMPLE, host, { recursive: true, filter: isOwn });
  const own = join(ROOT, 'test/hosts', name);
  if (existsSync(own)) cpSync(own, host, { recursive: true });
  for (const file of ['package', 'tsconfig']) {
    const patch = join(host, `${file}.patch.json`);
    if (existsSync(patch)) edit(join(host, `${file}.json`), (text) => merged(JSON.parse(text), readJson(patch)));
  }
  for (const [path, before, after] of HOSTS[name].edits ?? [])
    edit(join(host, path), (text) => {
      assert.ok(text.includes(before), `${path} has no ${before}`);
      return text.replace(before, after);
    });
  // In an ES module, a relative import names its file with the extension.
  if (readJson(join(host, 'package.json')).type === 'module')
    for (const path of sourcesOf(host))
      edit(path, (text) => text.replaceAll(/(from '\.{1,2}\/[^']+?)(?:\.js)?';/g, "$1.js';"));
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

function edit(path, change) {
  const changed = change(readFileSync(path, 'utf8'));
  writeFileSync(path, typeof changed === 'string' ? changed : JSON.stringify(changed, null, 2));
}

/** A JSON merge patch (RFC 7386). */
function merged(target, patch) {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const kept = { ...target };
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete kept[key];
    else kept[key] = merged(kept[key], value);
  return kept;
}

function sourcesOf(host) {
  return ['src', 'test'].flatMap((part) =>
    readdirSync(join(host, part), { recursive: true })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(host, part, path)),
  );
}

/** The host and each package in its `dependencies` find the same files under the name of a peer. */
function checkOneCopy(host) {
  const { dependencies } = readJson(join(host, 'package.json'));
  const users = [host, ...Object.keys(dependencies).map((name) => join(host, 'node_modules', name))];
  for (const name of PEERS) {
    const copies = new Set(users.flatMap((folder) => installedFor(realpathSync(folder), name)));
    assert.ok(copies.size <= 1, `${copies.size} copies of ${name}: ${[...copies].join(', ')}`);
  }
}

/** Where a package in `folder` finds another one: in the next `node_modules` above it that has it. */
function installedFor(folder, name) {
  const found = join(folder, 'node_modules', name);
  if (existsSync(found)) return [realpathSync(found)];
  return folder === dirname(folder) ? [] : installedFor(dirname(folder), name);
}

/** A database and a prefix in Redis of the host's own. */
async function createServers(name, type) {
  const id = `${name.replaceAll('-', '_')}_${randomBytes(4).toString('hex')}`;
  const administer = { postgres: administerPostgres, mariadb: administerMariadb }[type];
  await administer(`CREATE DATABASE ${id}`);
  return {
    env: {
      DATABASE_URL: `${type === 'postgres' ? postgresUrl() : mariadbUrl()}/${id}`,
      REDIS_URL: redisUrl(),
      USHER_QUEUE_PREFIX: id.replaceAll('_', '-'),
      USHER_MASTER_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    },
    drop: async () => {
      await administer(`DROP DATABASE ${id}`);
      await dropKeys(id.replaceAll('_', '-'));
    },
  };
}

async function administerPostgres(statement) {
  const client = new pg.Client(`${postgresUrl()}/postgres`);
  await client.connect();
  await client.query(statement.replace(/^DROP.*/, '$& WITH (FORCE)')).finally(() => client.end());
}

async function administerMariadb(statement) {
  const connection = await mysql.createConnection(mariadbUrl());
  await connection.query(statement).finally(() => connection.end());
}

async function dropKeys(prefix) {
  const redis = new Redis(redisUrl());
  const keys = await redis.keys(`*${prefix}*`);
  if (keys.length > 0) await redis.unlink(keys);
  redis.disconnect();
}

if (process.argv[1] === import.meta.filename) {
  const folder = mkdtempSync(join(tmpdir(), 'usher-hosts-'));
  try {
    pack(join(folder, 'packed'));
    const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(HOSTS);
    for (const name of names) await testHost(name, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
