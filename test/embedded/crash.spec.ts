import { readdir } from 'node:fs/promises';
import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { Child, Folders, until, UNTIL_INPUT_ENDS } from './support.js';

const folders = new Folders();

afterAll(() => folders.clean());

const WRITER = `
  const it = await openEmbeddedPostgres(process.argv[1], 'own');
  const pool = new pg.Pool({ ...it.connection, max: 4 });
  await pool.query('CREATE TABLE IF NOT EXISTS item (n int PRIMARY KEY, twin int)');
  const write = async (first) => {
    for (let n = first; ; n += 4) {
      const one = await pool.connect();
      await one.query('BEGIN');
      await one.query('INSERT INTO item VALUES ($1, NULL)', [n]);
      await one.query('UPDATE item SET twin = n WHERE n = $1', [n]);
      await one.query('COMMIT');
      one.release();
      process.stdout.write(n + '\\n');
    }
  };
  await Promise.all([0, 1, 2, 3].map(write));`;

test('a killed owner leaves the folder free and every acknowledged commit in it', async () => {
  const folder = await folders.initialised();
  const writer = new Child(WRITER, folder);
  const acknowledged = [];
  while (acknowledged.length < 500) acknowledged.push(Number(await writer.line()));
  await writer.kill();
  const database = await openEmbeddedPostgres(folder, 'own');
  const pool = new pg.Pool(database.connection);
  const { rows } = await pool.query<{ n: number; twin: number }>('SELECT n, twin FROM item');
  await pool.end();
  await database.close();
  const found = new Set(rows.map(({ n }) => n));
  expect(acknowledged.filter((n) => !found.has(n))).toEqual([]);
  expect(rows.filter(({ n, twin }) => n !== twin)).toEqual([]);
  expect(await readdir(folder)).toEqual(['postgres']);
});

test('a first start that was killed half way does not spoil the folder', async () => {
  const folder = await folders.empty();
  const starter = new Child(`await openEmbeddedPostgres(process.argv[1], 'own');`, folder);
  const halfWay = async () => (await readdir(folder)).some((name) => name.startsWith('postgres-unfinished-'));
  await until(halfWay);
  await starter.kill();
  const database = await openEmbeddedPostgres(folder, 'own');
  await database.close();
  expect(await readdir(folder)).toEqual(['postgres']);
});

const CONTENDER = `
  console.log('up');
  await new Promise((go) => process.stdin.once('data', go));
  const it = await openEmbeddedPostgres(process.argv[1], process.argv[2]).catch((error) => ({ role: error.constructor.name }));
  const one = it.connection && new pg.Client(it.connection);
  if (one) { await one.connect(); await one.query('INSERT INTO roll VALUES (pg_backend_pid())'); await one.end(); }
  console.log(it.role);
  ${UNTIL_INPUT_ENDS}
  await it.close?.();`;

async function race(folder: string, mode: 'own' | 'join'): Promise<(string | undefined)[]> {
  const contenders = Array.from({ length: 5 }, () => new Child(CONTENDER, folder, mode));
  await Promise.all(contenders.map((contender) => contender.line()));
  for (const contender of contenders) contender.start();
  const roles = await Promise.all(contenders.map((contender) => contender.line()));
  await Promise.all(contenders.map((contender) => contender.finish()));
  return roles.sort();
}

test('of five processes that start at once exactly one is the owner', async () => {
  const folder = await folders.initialised();
  const database = await openEmbeddedPostgres(folder, 'own');
  const pool = new pg.Pool(database.connection);
  await pool.query('CREATE TABLE roll (n int)');
  await pool.end();
  await database.close();
  const refused = Array.from({ length: 4 }, () => 'FolderInUseError');
  expect(await race(folder, 'own')).toEqual([...refused, 'owner']);
  expect(await race(folder, 'join')).toEqual(['guest', 'guest', 'guest', 'guest', 'owner']);
  expect(await readdir(folder)).toEqual(['postgres']);
});
