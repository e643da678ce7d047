/**
 * Starts MariaDB, Postgres and Redis that take nothing but TLS, on ports of their own in a temporary folder, and has
 * Usher's commands speak to each: with the authority known, unknown, and under a name that the certificate lacks. Run it by hand: `npm run test:tls`. Needs the servers' programs and openssl.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const CLI = join(import.meta.dirname, '../dist/cli.js');
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

  works('MariaDB, checked, and rediss', { ...both, DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') });
  works('MariaDB, unchecked', { ...both, DATABASE_URL: mysqlAt('127.0.0.2', 'REQUIRED') });
  fails('MariaDB without TLS', { ...both, DATABASE_URL: mysqlAt('localhost') }, /Access denied|insecure/);
  fails('MariaDB under another name', { ...both, DATABASE_URL: mysqlAt(hostname(), 'VERIFY_IDENTITY') }, /altnames/i);
  fails(
    'MariaDB of an unknown authority',
    { ...both, DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') },
    /certificate/i,
    false,
  );
  works('Postgres, checked, tables and queue', { DATABASE_URL: postgresAt('localhost', 'verify-full') });
  works('Postgres, unchecked', { DATABASE_URL: postgresAt('127.0.0.2', 'no-verify') });
  fails('Postgres without TLS', { DATABASE_URL: postgresAt('localhost') }, /no encryption|pg_hba/i);
  fails('Postgres under another name', { DATABASE_URL: postgresAt('127.0.0.2', 'verify-full') }, /altnames/i);
  fails(
    'Postgres of an unknown authority',
    { DATABASE_URL: postgresAt('localhost', 'verify-full') },
    /certificate/i,
    false,
  );
  const beside = { DATABASE_URL: mysqlAt('localhost', 'VERIFY_IDENTITY') };
  fails('Redis without TLS', { ...beside, QUEUE_URL: `redis://localhost:${redis}` }, /cannot open/);
  fails('Redis under another name', { ...beside, QUEUE_URL: `rediss://127.0.0.2:${redis}` }, /altnames/i);
} finally {
  for (const server of servers) server.kill('SIGKILL');
  await pause(500);
  rmSync(folder, { recursive: true, force: true });
}

/** The commands that open database and queue: the tables are made, a client is issued. */
function usher(settings, isAuthorityKnown) {
  const env = {
    PATH: process.env.PATH,
    ...settings,
    USHER_MASTER_KEYS: `k:${Buffer.alloc(32, 1).toString('base64')}`,
    OPS_USER: 'ops',
    OPS_PASSWORD: 'ops',
    ...(isAuthorityKnown && { NODE_EXTRA_CA_CERTS: inside('ca.pem') }),
  };
  const run = (...args) => spawnSync(process.execPath, [CLI, ...args], { env, cwd: folder, encoding: 'utf8' });
  const migrated = run('migrate');
  return migrated.status === 0 ? run('client', 'create', '--name', 'TLS', '--json') : migrated;
}

function works(what, settings, isAuthorityKnown = true) {
  const { status, stdout, stderr } = usher(settings, isAuthorityKnown);
  assert.equal(status, 0, `${what}: ${stderr}`);
  assert.ok(JSON.parse(stdout).client_id);
  console.log(`ok   ${what}`);
}

function fails(what, settings, reason, isAuthorityKnown = true) {
  const { status, stderr } = usher(settings, isAuthorityKnown);
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
  const data = `--datadir=${inside('mariadb')}`;
  execFileSync('mariadb-install-db', ['--no-defaults', data, '--auth-root-authentication-method=normal', ...as], {
    stdio: 'ignore',
  });
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
  start('mariadbd', [
    '--no-defaults',
    data,
    ...as,
    ...tls,
    ...rest,
    '--require-secure-transport=ON',
    '--bind-address=0.0.0.0',
  ]);
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
  const tls = [
    '--tls-cert-file',
    inside('server.pem'),
    '--tls-key-file',
    inside('server.key'),
    '--tls-auth-clients',
    'no',
  ];
  const rest = ['--port', '0', '--tls-port', String(port), '--bind', '*', '--protected-mode', 'no', '--dir', folder];
  start('redis-server', [...rest, ...tls, '--tls-ca-cert-file', inside('ca.pem'), '--save', '']);
  return answering(port);
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
