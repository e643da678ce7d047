/**
 * Starts MariaDB, Postgres and Redis that take nothing but TLS, on ports of their own in a temporary folder, and has
 * Usher speak to each: with the authority known, unknown, and under a name that the certificate lacks. It is the stage `tls` of the nightly run. Needs the servers' programs and openssl.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const DIST = join(import.meta.dirname, '../dist');
const isRoot = process.getuid() === 0;
const folder = mkdtempSync(join(tmpdir(), 'usher-tls-'));
const inside = (...path) => join(folder, ...path);
const servers = [];

try {
  makeCertificates();
  const [mysql, postgres, redis] = await Promise.all([startMariadb(), startPostgres(), startRedis()]);
  const both = { QUEUE_URL: `rediss://localhost:${redis}` };
  const mysqlAt = (host, mode) => `mysql://usher:usher@${host}:${mysql}/usher${mode ? `?ssl-mode=${mode}` : ''}`;
  const postgresAt = (host, mode) =>
    `postgres://postgres@${host}:${postgres}/postgres${mode ? `?sslmode=${mode}` : ''}`;

  await works('MariaDB, checked, and rediss', { ...both, DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') });
  await works('MariaDB, unchecked', { ...both, DATABASE_URL: mysqlAt('127.0.0.2', 'REQUIRED') });
  await fails('MariaDB without TLS', { ...both, DATABASE_URL: mysqlAt('localhost') }, /Access denied|insecure/);
  await fails(
    'MariaDB under another name',
    { ...both, DATABASE_URL: mysqlAt(hostname(), 'VERIFY_IDENTITY') },
    /altnames/i,
  );
  await fails(
    'MariaDB of an unknown authority',
    { ...both, DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') },
    /certificate/i,
    false,
  );
  await works('Postgres, checked, tables and queue', { DATABASE_URL: postgresAt('localhost', 'verify-full') });
  await works('Postgres, unchecked', { DATABASE_URL: postgresAt('127.0.0.2', 'no-verify') });
  await fails('Postgres without TLS', { DATABASE_URL: postgresAt('localhost') }, /no encryption|pg_hba/i);
  await fails('Postgres under another name', { DATABASE_URL: postgresAt('127.0.0.2', 'verify-full') }, /altnames/i);
  await fails(
    'Postgres of an unknown authority',
    { DATABASE_URL: postgresAt('localhost', 'verify-full') },
    /certificate/i,
    false,
  );
  const beside = { DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') };
  await fails('Redis without TLS', { ...beside, QUEUE_URL: `redis://localhost:${redis}` }, /cannot open/);
  await fails('Redis under another name', { ...beside, QUEUE_URL: `rediss://127.0.0.2:${redis}` }, /altnames/i);
  const sentinel = await startSentinel(redis);
  await works('Sentinel', { ...beside, QUEUE_URL: `rediss+sentinel://localhost:${sentinel}/cinema` });
  await fails(
    'Sentinel without TLS',
    { ...beside, QUEUE_URL: `redis+sentinel://localhost:${sentinel}/cinema` },
    /no answer/,
  );
  await fails(
    'Sentinel under another name',
    { ...beside, QUEUE_URL: `rediss+sentinel://127.0.0.2:${sentinel}/cinema` },
    /no answer/,
  );
} finally {
  for (const server of servers) server.kill('SIGKILL');
  await pause(500);
  rmSync(folder, { recursive: true, force: true });
}

/** Creates the tables, then starts a process that opens database and queue. Returns when it listens or has ended. */
async function usher(settings, isAuthorityKnown) {
  const env = {
    PATH: process.env.PATH,
    PORT: '0',
    ...settings,
    USHER_MASTER_KEYS: `k:${Buffer.alloc(32, 1).toString('base64')}`,
    OPS_USER: 'ops',
    OPS_PASSWORD: 'ops',
    ...(isAuthorityKnown && { NODE_EXTRA_CA_CERTS: inside('ca.pem') }),
  };
  const options = { env, cwd: folder, encoding: 'utf8' };
  const migrated = spawnSync(process.execPath, [join(DIST, 'cli.js'), 'migrate'], options);
  if (migrated.status !== 0) return migrated;
  const server = spawn(process.execPath, [join(DIST, 'main.js')], options);
  let stderr = '';
  server.stderr.on('data', (text) => (stderr += text));
  const ended = new Promise((resolve) => server.once('close', (status) => resolve({ status, stderr })));
  const listens = new Promise((resolve) => {
    server.stdout.on('data', (text) => String(text).includes('dashboard at') && resolve({ status: 0, stderr }));
  });
  const result = await Promise.race([ended, listens]);
  server.kill('SIGKILL');
  return result;
}

async function works(what, settings, isAuthorityKnown = true) {
  const { status, stderr } = await usher(settings, isAuthorityKnown);
  assert.equal(status, 0, `${what}: ${stderr}`);
  console.log(`ok   ${what}`);
}

async function fails(what, settings, reason, isAuthorityKnown = true) {
  const { status, stderr } = await usher(settings, isAuthorityKnown);
  assert.equal(status, 1, `${what} was let in`);
  assert.match(stderr, reason);
  assert.equal(stderr.trim().split('\n').length, 1, stderr);
  console.log(`ok   ${what}: ${stderr.trim()}`);
}

/** A certificate for `localhost` alone. */
function makeCertificates() {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=Test authority', '-keyout', 'ca.key', '-out', 'ca.pem');
  openssl('req', ...key, '-subj', '/CN=localhost', '-keyout', 'server.key', '-out', 'server.csr');
  writeFileSync(inside('names'), 'subjectAltName=DNS:localhost');
  const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
  openssl('x509', '-req', '-in', 'server.csr', ...authority, '-days', '2', '-extfile', 'names', '-out', 'server.pem');
  chmodSync(folder, 0o755);
}

async function startMariadb() {
  const port = await freePort();
  const as = isRoot ? ['--user=root'] : [];
  // A server deletes the temporary tables in its folder when it starts, so it must not be the folder of another server.
  const files = ['--no-defaults', `--datadir=${inside('mariadb')}`, `--tmpdir=${folder}`, ...as];
  execFileSync('mariadb-install-db', [...files, '--auth-root-authentication-method=normal'], { stdio: 'ignore' });
  writeFileSync(
    inside('init.sql'),
    // One statement a line.
    [
      "DELETE FROM mysql.global_priv WHERE user = '';",
      'CREATE DATABASE usher;',
      'FLUSH PRIVILEGES;',
      "CREATE USER usher@'%' IDENTIFIED BY 'usher';",
      "GRANT ALL ON usher.* TO usher@'%';",
    ].join('\n'),
  );
  const tls = ['cert', 'key', 'ca'].map(
    (part) => `--ssl-${part}=${inside(part === 'ca' ? 'ca.pem' : part === 'key' ? 'server.key' : 'server.pem')}`,
  );
  const rest = [`--socket=${inside('mariadb.sock')}`, `--port=${port}`, `--init-file=${inside('init.sql')}`];
  start('mariadbd', [...files, ...tls, ...rest, '--require-secure-transport=ON', '--bind-address=0.0.0.0']);
  return answering(port);
}

async function startPostgres() {
  const port = await freePort();
  const data = inside('postgres');
  mkdirSync(data);
  const copy = (name) => execFileSync('cp', [inside(name), join(data, name)]);
  const as = (command, args) => (isRoot ? ['runuser', ['-u', 'postgres', '--', command, ...args]] : [command, args]);
  const bin = readdirSync('/usr/lib/postgresql')
    .map((version) => `/usr/lib/postgresql/${version}/bin`)
    .at(-1);
  if (isRoot) execFileSync('chown', ['postgres', data]);
  execFileSync(...as(`${bin}/initdb`, ['-D', data, '-U', 'postgres', '-A', 'trust']), { stdio: 'ignore' });
  for (const name of ['server.pem', 'server.key']) copy(name);
  execFileSync('chmod', ['600', join(data, 'server.key')]);
  if (isRoot) execFileSync('chown', ['postgres', join(data, 'server.pem'), join(data, 'server.key')]);
  writeFileSync(join(data, 'pg_hba.conf'), 'hostssl all all 0.0.0.0/0 trust\nhostssl all all ::/0 trust\n');
  const settings = [
    'ssl=on',
    'ssl_cert_file=server.pem',
    'ssl_key_file=server.key',
    `port=${port}`,
    'unix_socket_directories=',
  ];
  const flags = [...settings, 'listen_addresses=*'].flatMap((setting) => ['-c', setting]);
  start(...as(`${bin}/postgres`, ['-D', data, ...flags]));
  return answering(port);
}

async function startRedis() {
  const port = await freePort();
  start('redis-server', [...redisOptions(port), '--save', '']);
  return answering(port);
}

/** It reports the primary by its name, which is the one in the certificate. */
async function startSentinel(primary) {
  const port = await freePort();
  const names = ['sentinel resolve-hostnames yes', 'sentinel announce-hostnames yes'];
  const lines = [...names, 'tls-replication yes', `sentinel monitor cinema localhost ${primary} 1`];
  writeFileSync(inside('sentinel.conf'), `${lines.join('\n')}\n`);
  start('redis-server', [inside('sentinel.conf'), '--sentinel', ...redisOptions(port)]);
  return answering(port);
}

function redisOptions(port) {
  const certificate = ['--tls-cert-file', inside('server.pem'), '--tls-key-file', inside('server.key')];
  const tls = [...certificate, '--tls-ca-cert-file', inside('ca.pem'), '--tls-auth-clients', 'no'];
  return ['--port', '0', '--tls-port', String(port), '--bind', '*', '--protected-mode', 'no', '--dir', folder, ...tls];
}

/** With runuser in between, the server itself ends with its parent's group. */
function start(command, args) {
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  servers.push({ kill: (signal) => process.kill(-child.pid, signal) });
}

async function freePort() {
  const server = createServer().listen(0);
  await new Promise((listening) => server.once('listening', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

async function answering(port) {
  for (let tries = 0; tries < 300; tries += 1) {
    const answers = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (answers) return port;
    await pause(100);
  }
  throw new Error(`nothing answers at port ${port}`);
}
