import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { Child, Folders, until, UNTIL_INPUT_ENDS } from './support.js';

const folders = new Folders();

afterAll(() => folders.clean());

const WRITER = `
  const database = await openEmbeddedPostgres(process.argv[1], 'own');
  const pool = new pg.Pool({ ...database.connection, max: 4 });
  await pool.query('CREATE TABLE IF NOT EXISTS item (n int PRIMARY KEY, copy int)');
  const write = async (first) => {
    for (let n = first; ; n += 4) {
      const client = await pool.connect();
      await client.query('BEGIN');
      await client.query('INSERT INTO item VALUES ($1, NULL)', [n]);
      await client.query('UPDATE item SET copy = n WHERE n = $1', [n]);
      await client.query('COMMIT');
      client.release();
      process.stdout.write(n + '\\n');
    }
  };
  await Promise.all([0, 1, 2, 3].map(write));`;

test('after an owner was killed, the folder is free and holds every acknowledged commit', async () => {
  const folder = await folders.initialised();
  const writer = new Child(WRITER, folder);
  const acknowledged = [];
  while (acknowledged.length < 500) acknowledged.push(Number(await writer.line()));
  await writer.kill();
  const database = await openEmbeddedPostgres(folder, 'own');
  const pool = new pg.Pool(database.connection);
  const { rows } = await pool.query<{ n: number; copy: number }>('SELECT n, copy FROM item');
  await pool.end();
  await database.close();
  const found = new Set(rows.map(({ n }) => n));
  expect(acknowledged.filter((n) => !found.has(n))).toEqual([]);
  expect(rows.filter(({ n, copy }) => n !== copy)).toEqual([]);
  expect(await readdir(folder)).toEqual(['postgres']);
});

test('a first start that was killed leaves the folder usable', async () => {
  const folder = await folders.empty();
  const starter = new Child(`await openEmbeddedPostgres(process.argv[1], 'own');`, folder);
  const hasUnfinishedDatabase = async () =>
    (await readdir(folder)).some((name) => name.startsWith('postgres-unfinished-'));
  await until(hasUnfinishedDatabase);
  await starter.kill();
  const database = await openEmbeddedPostgres(folder, 'own');
  await database.close();
  expect(await readdir(folder)).toEqual(['postgres']);
});

const CONTENDER = `
  console.log('up');
  await new Promise((go) => process.stdin.once('data', go));
  const database = await openEmbeddedPostgres(process.argv[1], process.argv[2]).catch((error) => ({ role: error.constructor.name }));
  const client = database.connection && new pg.Client(database.connection);
  if (client) { await client.connect(); await client.query('INSERT INTO opener VALUES (pg_backend_pid())'); await client.end(); }
  console.log(database.role);
  ${UNTIL_INPUT_ENDS}
  await database.close?.();`;

async function race(folder: string, mode: 'own' | 'join'): Promise<(string | undefined)[]> {
  const contenders = Array.from({ length: 5 }, () => new Child(CONTENDER, folder, mode));
  await Promise.all(contenders.map((contender) => contender.line()));
  for (const contender of contenders) contender.start();
  const roles = await Promise.all(contenders.map((contender) => contender.line()));
  await Promise.all(contenders.map((contender) => contender.finish()));
  return roles.sort();
}

test('exactly one of five processes that start at once is the owner', async () => {
  const folder = await folders.initialised();
  const database = await openEmbeddedPostgres(folder, 'own');
  const pool = new pg.Pool(database.connection);
  await pool.query('CREATE TABLE opener (n int)');
  await pool.end();
  await database.close();
  const refused = Array.from({ length: 4 }, () => 'FolderInUseError');
  expect(await race(folder, 'own')).toEqual([...refused, 'owner']);
  expect(await race(folder, 'join')).toEqual(['guest', 'guest', 'guest', 'guest', 'owner']);
  expect(await readdir(folder)).toEqual(['postgres']);
});

test('a database that has stopped itself says so to every connection, and its process can close it', async () => {
  const folder = await folders.initialised();
  const log = join(folder, 'postgres/pg_wal');
  const database = await openEmbeddedPostgres(folder, 'own');
  const pool = new pg.Pool(database.connection);
  pool.on('error', () => undefined);
  await pool.query('CREATE TABLE item (n int)');
  // Without a place for the next file of its log, Postgres panics, as on a full disk.
  await rename(log, `${log}-away`);
  const stopped = { code: '57P02', message: expect.stringMatching(/has stopped \(could not create.*; restart/) };
  await expect(pool.query('INSERT INTO item VALUES (1); SELECT pg_switch_wal()')).rejects.toMatchObject(stopped);
  await expect(pool.query('SELECT 1')).rejects.toMatchObject(stopped);
  await pool.end();
  await database.close();

  await rename(`${log}-away`, log);
  const again = await openEmbeddedPostgres(folder, 'own');
  const client = new pg.Client(again.connection);
  await client.connect();
  expect((await client.query('SELECT n FROM item')).rowCount).toBeLessThanOrEqual(1);
  await client.end();
  await again.close();
});
