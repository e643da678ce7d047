import { chmod, mkdir, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { explain, UnusableFolderError } from '../../../src/database/embedded/folder/data-folder.js';
import { type EmbeddedPostgres, FolderInUseError, openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { faultLine } from '../../../src/server/fault.js';
import { copyTemplate } from '../../support/embedded-template.js';
import { usherProcess } from '../../support/process.js';
import { Child, Folders, until, UNTIL_INPUT_ENDS } from './support.js';

const folders = new Folders();

afterAll(() => folders.clean());

async function queryValues(database: EmbeddedPostgres, sql: string): Promise<unknown[]> {
  const pool = new pg.Pool(database.connection);
  try {
    return (await pool.query({ text: sql, rowMode: 'array' })).rows.flat();
  } finally {
    await pool.end();
  }
}

const owner = (folder: string): Child =>
  new Child(
    `const database = await openEmbeddedPostgres(process.argv[1], 'own'); console.log(database.role);
     ${UNTIL_INPUT_ENDS} await database.close();`,
    folder,
  );

describe('a new folder', () => {
  let database: EmbeddedPostgres;
  let folder: string;

  beforeAll(async () => {
    folder = join(await folders.empty(), 'deep', 'data');
    database = await openEmbeddedPostgres(folder, 'own');
  });

  afterAll(() => database.close());

  test('gets a database in UTC and UTF8', async () => {
    const settings = `SELECT current_setting('timezone'), current_setting('server_encoding')`;
    expect(await queryValues(database, settings)).toEqual(['UTC', 'UTF8']);
  });

  test('survives unbounded recursion in a query', async () => {
    const recursion = `CREATE FUNCTION f(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN f(i + 1); END'`;
    await queryValues(database, recursion);
    await expect(queryValues(database, 'SELECT f(1)')).rejects.toMatchObject({ code: '54001' });
    await expect(queryValues(database, `SELECT ${'1+('.repeat(50_000)}1${')'.repeat(50_000)}`)).rejects.toBeDefined();
    expect(await queryValues(database, 'SELECT 1')).toEqual([1]);
  });

  test('is accessible only to its user, and so is the socket in it', async () => {
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect((await stat(join(folder, '.s.PGSQL.5432'))).mode & 0o777).toBe(0o600);
  });

  test('keeps its rows, and holds only the database once it is closed', async () => {
    await queryValues(database, 'CREATE TABLE kept AS SELECT 42 AS n');
    await database.close();
    expect(await readdir(folder)).toEqual(['postgres']);
    database = await openEmbeddedPostgres(folder, 'own');
    expect(await queryValues(database, 'SELECT n FROM kept')).toEqual([42]);
  });
});

describe('a folder in use', () => {
  test('by this process is refused to a second owner and shared with guests', async () => {
    const folder = await folders.initialised();
    const first = await openEmbeddedPostgres(folder, 'own');
    await expect(openEmbeddedPostgres(folder, 'own')).rejects.toThrow(FolderInUseError);
    const guest = await openEmbeddedPostgres(folder, 'join');
    expect([first.role, guest.role]).toEqual(['owner', 'guest']);
    await queryValues(guest, 'CREATE TABLE made_by_guest AS SELECT 1 AS n');
    expect(await queryValues(first, 'SELECT n FROM made_by_guest')).toEqual([1]);
    await guest.close();
    await first.close();
  });

  test('by another process: the error names that process; the folder is free once it ends', async () => {
    const folder = await folders.initialised();
    const child = owner(folder);
    expect(await child.line()).toBe('owner');
    await expect(openEmbeddedPostgres(folder, 'own')).rejects.toMatchObject({ pid: child.pid, folder });
    const guest = await openEmbeddedPostgres(folder, 'join');
    expect(await queryValues(guest, 'SELECT 7')).toEqual([7]);
    await guest.close();
    expect(await child.finish()).toBe(0);
    const next = await openEmbeddedPostgres(folder, 'join');
    expect(next.role).toBe('owner');
    await next.close();
  });

  test('is closed by a command only after its guests; who comes meanwhile is the next owner', async () => {
    const folder = await folders.initialised();
    const command = await openEmbeddedPostgres(folder, 'join', { guestsLimitMs: 60_000 });
    const guest = await openEmbeddedPostgres(folder, 'join');
    const closing = command.close();
    const next = openEmbeddedPostgres(folder, 'join');
    expect(await queryValues(guest, 'SELECT 7')).toEqual([7]);
    await guest.close();
    await closing;
    const { role, close } = await next;
    await close();
    expect(role).toBe('owner');
  });

  test('waits for a guest no longer than its limit, and tells it in one line that the owner has ended', async () => {
    const folder = await folders.initialised();
    const command = await openEmbeddedPostgres(folder, 'join', { guestsLimitMs: 1 });
    const guest = await openEmbeddedPostgres(folder, 'join');
    await command.close();
    const fault = await queryValues(guest, 'SELECT 7').catch(faultLine);
    expect(fault).toBe('another process that ran the embedded database has ended; run the command again');
    await guest.close();
  });

  test('serves commands that run at the same time without a server', async () => {
    const settings = { DATABASE_URL: `embedded:${await folders.initialised()}` };
    const commands = [['client', 'create', '--name', 'One'], ['client', 'list'], ['webhook', 'list'], ['migrate']];
    const ended = await Promise.all(commands.map((args) => usherProcess(settings, args)));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(commands.map(() => [0, '']));
  });

  test('rolls back the transaction of a guest that is killed', async () => {
    const folder = await folders.initialised();
    const database = await openEmbeddedPostgres(folder, 'own');
    await queryValues(database, 'CREATE TABLE item (n int)');
    const script = `const database = await openEmbeddedPostgres(process.argv[1], 'join');
      const client = new pg.Client(database.connection); await client.connect();
      await client.query('BEGIN'); await client.query('INSERT INTO item VALUES (1)'); console.log(database.role); ${UNTIL_INPUT_ENDS}`;
    const guest = new Child(script, folder);
    expect(await guest.line()).toBe('guest');
    const waiting = queryValues(database, 'SELECT n FROM item');
    await guest.kill();
    expect(await waiting).toEqual([]);
    await database.close();
  });

  test('ends the connections of its clients with 57P01 when it closes', async () => {
    const database = await openEmbeddedPostgres(await folders.initialised(), 'own');
    const client = new pg.Client(database.connection);
    const ended = new Promise((resolve) => client.on('error', resolve));
    await client.connect();
    await client.query('BEGIN');
    await database.close();
    expect(await ended).toMatchObject({ code: '57P01' });
  });
});

test('a folder with a path of 200 characters works for owner and guest, and leaves nothing behind', async () => {
  const parent = await folders.empty();
  const folder = join(parent, 'x'.repeat(200 - parent.length - 1));
  const links = async () => (await readdir(await realpath(tmpdir()))).filter((name) => /^usher-\w{6}$/.test(name));
  const before = await links();
  await mkdir(folder, { mode: 0o700 });
  copyTemplate(folder);
  const database = await openEmbeddedPostgres(folder, 'own');
  await expect(openEmbeddedPostgres(folder, 'own')).rejects.toThrow(FolderInUseError);
  const guest = await openEmbeddedPostgres(folder, 'join');
  expect(await queryValues(guest, 'SELECT 1')).toEqual([1]);
  await guest.close();
  await database.close();
  expect(await links()).toEqual(before);
});

describe('a folder that cannot be used is refused with the reason in one line:', () => {
  const refusal = async (folder: string): Promise<string> => {
    const error = await openEmbeddedPostgres(folder, 'own').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnusableFolderError);
    expect((error as Error).message).not.toContain('\n');
    return (error as Error).message;
  };

  test('its parent is a file', async () => {
    const file = join(await folders.empty(), 'file');
    await writeFile(file, '');
    expect(await refusal(join(file, 'data'))).toContain('cannot be used (ENOTDIR)');
  });

  test('its parent is /proc', async () => {
    expect(await refusal('/proc/nope/data')).toContain('cannot be used (ENOENT)');
  });

  test('it is accessible to other users and holds other files', async () => {
    const folder = await folders.empty();
    await writeFile(join(folder, 'notes.txt'), '');
    await chmod(folder, 0o755);
    expect(await refusal(folder)).toContain('holds other files');
    expect((await stat(folder)).mode & 0o777).toBe(0o755);
  });

  test('it holds a database of another version; it is not left locked', async () => {
    const folder = await folders.initialised();
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '17\n');
    expect(await refusal(folder)).toMatch(/made by Postgres 17 and this is 18/);
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '18\n');
    await (await openEmbeddedPostgres(folder, 'own')).close();
  });

  test('its postgres folder is not a database', async () => {
    const folder = await folders.initialised();
    await rm(join(folder, 'postgres', 'PG_VERSION'));
    expect(await refusal(folder)).toContain('is not a database');
    await until(async () => (await readdir(folder)).every((name) => !name.endsWith('.sock')));
  });
});

test.each([
  ['FATAL:  could not write lock file "postmaster.pid": No space left on device', new Error('PGlite failed')],
  // What PGlite throws while it creates a database.
  ['', { name: 'ErrnoError', errno: 51 }],
])('on a full disk an operator is not told to move the data away', async (stderr, error) => {
  expect(await explain('/data', stderr, error)).toBe('The disk of /data is full; make room on it and start again');
});
