import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import pg from 'pg';
import { end, findBinary, start, waitFor } from '../chaos/processes.js';
import type { Query } from '../chaos/tables.js';
import { addressOf, at, type Host } from './hosts.js';

export type Database = 'mariadb' | 'postgres';

/** Usher reaches the database through a relay at its host, which can delay what passes. */
const [DELAY_MS, RELAY_PORT] = [100, 7000];
const [START_MS, STOP_MS] = [90_000, 20_000];

export const startAt = (host: Host, folder: string, command: string[], log: string = host, env = process.env) =>
  start('ip', [...at(host).slice(1), ...command], join(folder, `${log}.log`), env);

interface Prepared {
  command: string[];
  port: number;
  url: (port: number) => string;
  query: Query;
  /** The signals that make the server shut down, and end as in a crash. */
  signals: Record<'SIGTERM' | 'SIGKILL', NodeJS.Signals>;
}

/** A running database. */
export interface Server {
  /** What Usher uses. */
  url: string;
  query: Query;
  /** Switches the delay of its link on or off. */
  delay: () => void;
  restart: (signal: 'SIGTERM' | 'SIGKILL', downMs: number) => Promise<void>;
}

export async function startDatabase(kind: Database, folder: string): Promise<Server> {
  const data = join(folder, 'database');
  mkdirSync(data);
  const { command, port, url, query, signals } =
    kind === 'mariadb' ? prepareMariadb(data, folder) : preparePostgres(data, folder);
  const run = () => startAt('database', folder, command);
  const isReady = async (): Promise<boolean> => (await query('SELECT 1')).length === 1;
  let child = run();
  await waitFor(`${kind} answers`, START_MS, isReady);
  const passing = [resolve('test/partitions/relay.mjs'), RELAY_PORT, port, DELAY_MS].map(String);
  const relay = startAt('database', folder, [process.execPath, ...passing], 'relay');
  const restart: Server['restart'] = async (signal, downMs) => {
    await end(child, signals[signal], STOP_MS);
    await sleep(downMs);
    child = run();
    await waitFor(`${kind} answers again`, START_MS, isReady);
  };
  return { url: url(RELAY_PORT), query, delay: () => void relay.kill('SIGUSR2'), restart };
}

const HOST = addressOf('database');

function prepareMariadb(data: string, folder: string): Prepared {
  // A server deletes the temporary tables in its folder when it starts, so it must not be the folder of another server.
  const common = ['--no-defaults', `--datadir=${data}`, `--tmpdir=${folder}`, '--user=root'];
  const install = ['--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'];
  execFileSync(findBinary('mariadb-install-db'), [...common, ...install], { stdio: 'pipe' });
  const init = [
    'CREATE DATABASE IF NOT EXISTS usher;',
    "CREATE USER IF NOT EXISTS usher@'%';",
    "GRANT ALL ON *.* TO usher@'%';",
  ].join('\n');
  const files = [`--socket=${join(folder, 'sock')}`, `--pid-file=${join(folder, 'pid')}`];
  const command = [
    ...[findBinary('mariadbd'), ...common, ...files, '--bind-address=0.0.0.0', '--skip-name-resolve'],
    '--innodb-flush-log-at-trx-commit=2',
    `--init-file=${writeInit(folder, init)}`,
  ];
  const url = (port: number): string => `mysql://usher@${HOST}:${port}/usher`;
  const query: Query = async (sql) => {
    const connection = await createConnection(url(3306));
    try {
      return (await connection.query<RowDataPacket[]>(sql))[0];
    } finally {
      connection.destroy();
    }
  };
  return { command, port: 3306, url, query, signals: { SIGTERM: 'SIGTERM', SIGKILL: 'SIGKILL' } };
}

function preparePostgres(data: string, folder: string): Prepared {
  const [version] = readdirSync('/usr/lib/postgresql');
  const bin = `/usr/lib/postgresql/${version}/bin`;
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  for (const path of [folder, data]) chownSync(path, uid!, gid!);
  const asPostgres = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  execFileSync(asPostgres[0]!, [...asPostgres.slice(1), `${bin}/initdb`, '-D', data, '-A', 'trust'], { stdio: 'pipe' });
  appendFileSync(join(data, 'pg_hba.conf'), 'host all all 10.77.0.0/24 trust\n');
  const options = ['-c', 'listen_addresses=*', '-c', `unix_socket_directories=${data}`, '-c', 'fsync=off'];
  const url = (port: number): string => `postgres://postgres@${HOST}:${port}/postgres`;
  const query: Query = async (sql) => {
    const client = new pg.Client(url(5432));
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const command = [...asPostgres, `${bin}/postgres`, '-D', data, ...options];
  return { command, port: 5432, url, query, signals: { SIGTERM: 'SIGINT', SIGKILL: 'SIGQUIT' } };
}

function writeInit(folder: string, sql: string): string {
  const file = join(folder, 'init.sql');
  writeFileSync(file, sql);
  return file;
}
