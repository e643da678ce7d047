import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import pg from 'pg';
import { findBinary, start, waitFor } from '../chaos/processes.js';
import type { Query } from '../chaos/tables.js';
import { addressOf, at, type Host } from './hosts.js';

export type Database = 'mariadb' | 'postgres';

export const startAt = (host: Host, folder: string, command: string[], env: NodeJS.ProcessEnv = process.env) =>
  start('ip', [...at(host).slice(1), ...command], join(folder, `${host}.log`), env);

/** Starts the database, and Redis beside MariaDB. Returns Usher's settings and a function that asks the database. */
export async function startServers(kind: Database, folder: string) {
  const data = join(folder, 'database');
  mkdirSync(data);
  const server = kind === 'mariadb' ? startMariadb(data, folder) : startPostgres(data, folder);
  const { query } = server;
  await waitFor(`${kind} answers`, 90_000, async () => (await query('SELECT 1')).length === 1);
  if (kind === 'postgres') return { query, settings: { DATABASE_URL: server.url } };
  startAt('queue', folder, [findBinary('redis-server'), '--bind', '0.0.0.0', '--protected-mode', 'no', '--save', '']);
  return { query, settings: { DATABASE_URL: server.url, QUEUE_URL: `redis://${addressOf('queue')}:6379` } };
}

const HOST = addressOf('database');

function startMariadb(data: string, folder: string): { url: string; query: Query } {
  const common = ['--no-defaults', `--datadir=${data}`, '--user=root'];
  const install = ['--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'];
  execFileSync(findBinary('mariadb-install-db'), [...common, ...install], { stdio: 'pipe' });
  const init = ['CREATE DATABASE usher;', "CREATE USER usher@'%';", "GRANT ALL ON *.* TO usher@'%';"].join('\n');
  const files = [`--socket=${join(folder, 'sock')}`, `--pid-file=${join(folder, 'pid')}`];
  startAt('database', folder, [
    ...[findBinary('mariadbd'), ...common, ...files, '--bind-address=0.0.0.0', '--skip-name-resolve'],
    '--innodb-flush-log-at-trx-commit=2',
    `--init-file=${writeInit(folder, init)}`,
  ]);
  const url = `mysql://usher@${HOST}:3306/usher`;
  const query: Query = async (sql) => {
    const connection = await createConnection(url);
    try {
      return (await connection.query<RowDataPacket[]>(sql))[0];
    } finally {
      connection.destroy();
    }
  };
  return { url, query };
}

function startPostgres(data: string, folder: string): { url: string; query: Query } {
  const [version] = readdirSync('/usr/lib/postgresql');
  const bin = `/usr/lib/postgresql/${version}/bin`;
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  for (const path of [folder, data]) chownSync(path, uid!, gid!);
  const asPostgres = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  execFileSync(asPostgres[0]!, [...asPostgres.slice(1), `${bin}/initdb`, '-D', data, '-A', 'trust'], { stdio: 'pipe' });
  appendFileSync(join(data, 'pg_hba.conf'), 'host all all 10.77.0.0/24 trust\n');
  const options = ['-c', 'listen_addresses=*', '-c', `unix_socket_directories=${data}`, '-c', 'synchronous_commit=off'];
  startAt('database', folder, [...asPostgres, `${bin}/postgres`, '-D', data, ...options]);
  const url = `postgres://postgres@${HOST}:5432/postgres`;
  const query: Query = async (sql) => {
    const client = new pg.Client(url);
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  return { url, query };
}

function writeInit(folder: string, sql: string): string {
  const file = join(folder, 'init.sql');
  writeFileSync(file, sql);
  return file;
}
