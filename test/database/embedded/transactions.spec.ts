import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { message, query } from '../../../src/database/embedded/protocol/messages.js';
import { Multiplexer } from '../../../src/database/embedded/session/multiplexer.js';
import { until } from './support.js';

let db: PGlite;
let multiplexer: Multiplexer;
const pools: pg.Pool[] = [];

function pool(config: pg.PoolConfig = {}, server = multiplexer): pg.Pool {
  const created = new pg.Pool({
    stream: () => server.createStream(),
    user: 'postgres',
    database: 'postgres',
    ...config,
  });
  created.on('error', () => undefined);
  pools.push(created);
  return created;
}

async function connect(config: pg.PoolConfig = {}, server = multiplexer): Promise<pg.PoolClient> {
  const created = await pool(config, server).connect();
  created.on('error', () => undefined);
  return created;
}

beforeAll(async () => {
  db = await PGlite.create();
  multiplexer = await Multiplexer.over(db);
  await db.exec('CREATE TABLE item (id int PRIMARY KEY, owner text)');
});

afterEach(async () => {
  await Promise.all(pools.splice(0).map((opened) => opened.end()));
  await db.exec('TRUNCATE item');
});

afterAll(async () => {
  await multiplexer.close();
  await db.close();
});

async function insertTwiceInTransaction(from: pg.Pool, owner: string, first: number): Promise<void> {
  const client = await from.connect();
  await client.query('BEGIN');
  const before = await client.query('SELECT count(*)::int AS n FROM item');
  await client.query('INSERT INTO item VALUES ($1, $2)', [first, owner]);
  await client.query('INSERT INTO item VALUES ($1, $2)', [first + 1, owner]);
  const after = await client.query('SELECT count(*)::int AS n FROM item');
  await client.query('COMMIT');
  client.release();
  expect(after.rows[0].n).toBe(before.rows[0].n + 2);
}

describe('transactions', () => {
  test('of two pools do not interleave', async () => {
    const [a, b] = [pool({ max: 5 }), pool({ max: 5 })];
    const all = Array.from({ length: 40 }, (_, i) => insertTwiceInTransaction(i % 2 ? a : b, i % 2 ? 'a' : 'b', i * 2));
    await Promise.all(all);
    expect((await a.query('SELECT count(*)::int AS n FROM item')).rows).toEqual([{ n: 80 }]);
  });

  test('are invisible to other connections before their commit', async () => {
    const writer = await connect();
    await writer.query('BEGIN');
    await writer.query("INSERT INTO item VALUES (1, 'a')");
    const seen = pool().query('SELECT id FROM item');
    await writer.query('ROLLBACK');
    expect((await seen).rows).toEqual([]);
    writer.release();
  });

  test('of a dropped connection are rolled back', async () => {
    const dropped = await connect();
    await dropped.query('BEGIN');
    await dropped.query("INSERT INTO item VALUES (1, 'dropped')");
    dropped.release(true);
    expect((await pool().query('SELECT id FROM item')).rows).toEqual([]);
  });

  test('of a destroyed stream are rolled back, even after an error without Sync', async () => {
    const stream = multiplexer.createStream();
    const replies = collect(stream);
    stream.write(startup());
    stream.write(query("BEGIN; INSERT INTO item VALUES (1, 'gone')"));
    await until(() => replies().includes('INSERT 0 1'));
    stream.write(Buffer.concat([message('P', Buffer.from('\0selec\0\0\0')), message('H')]));
    await until(() => replies().includes('syntax error'));
    stream.destroy();
    expect((await pool().query('SELECT id FROM item')).rows).toEqual([]);
  });

  test('that are idle while other connections wait are ended with 25P03', async () => {
    const shortTimeout = await Multiplexer.over(db, 20);
    const idle = await connect({}, shortTimeout);
    const ended = new Promise<Error>((resolve) => idle.once('error', resolve));
    await idle.query('BEGIN');
    await idle.query("INSERT INTO item VALUES (1, 'idle')");
    const waiting = pool({}, shortTimeout).query('SELECT id FROM item');
    expect(await ended).toMatchObject({ code: '25P03' });
    expect((await waiting).rows).toEqual([]);
    idle.release(true);
  });
});

describe('a connection', () => {
  test('has its own search_path, also after SET', async () => {
    await pool().query('CREATE SCHEMA IF NOT EXISTS usher_sandbox; CREATE SCHEMA IF NOT EXISTS "Odd, name"');
    const quoted = await connect({ options: '-c search_path="usher_sandbox"' });
    const odd = await connect({ options: '-c search_path="Odd,\\ name"' });
    const plain = await connect();
    const path = async (of: pg.PoolClient) => (await of.query('SELECT current_schema AS s')).rows[0].s;
    await plain.query('SET search_path TO pg_catalog');
    expect([await path(quoted), await path(odd), await path(plain)]).toEqual([
      'usher_sandbox',
      'Odd, name',
      'pg_catalog',
    ]);
    const later = await connect();
    expect(await path(later)).toBe('public');
    for (const client of [quoted, odd, plain, later]) client.release();
  });

  test('is refused with an option that cannot be kept per connection', async () => {
    await expect(connect({ options: '-c work_mem=1MB' })).rejects.toMatchObject({ code: '0A000' });
  });

  test('has its own prepared statements', async () => {
    const [a, b] = [await connect(), await connect()];
    const named = (of: pg.PoolClient, text: string) => of.query({ name: 'same', text, values: [1] });
    for (let round = 0; round < 2; round++) {
      expect((await named(a, 'SELECT $1::int + 1 AS n')).rows).toEqual([{ n: 2 }]);
      expect((await named(b, 'SELECT $1::int + 10 AS n')).rows).toEqual([{ n: 11 }]);
    }
    for (const client of [a, b]) client.release(true);
    await until(async () => (await db.query('SELECT 1 FROM pg_prepared_statements')).rows.length === 0);
  });

  test('continues after an error, also within a batch', async () => {
    const client = await connect();
    await expect(client.query('SELECT $1::int / 0', [1])).rejects.toMatchObject({ code: '22012' });
    expect((await client.query('SELECT $1::int AS n', [7])).rows).toEqual([{ n: 7 }]);
    client.release();
  });

  test('that sends COPY receives an error and continues', async () => {
    const client = await connect();
    await expect(client.query('COPY item FROM STDIN')).rejects.toThrow('COPY FROM STDIN is not supported');
    await expect(client.query({ text: 'COPY item FROM STDIN', values: [] })).rejects.toThrow(
      'COPY FROM STDIN is not supported',
    );
    expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    client.release();
  });

  test('that sends an invalid message is ended, and no other', async () => {
    const invalid = [message('y'), Buffer.from('Q\x7f\xff\xff\xff', 'latin1'), Buffer.from('Q\0\0\0\x01', 'latin1')];
    for (const bytes of invalid) {
      const stream = multiplexer.createStream();
      const replies = collect(stream);
      stream.write(Buffer.concat([startup(), bytes]));
      await until(() => stream.destroyed);
      expect(replies()).toMatch(/FATAL.*(08P01|54000)/s);
    }
    expect((await pool().query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  });

  test('that requests encryption receives N; a cancel request receives nothing', async () => {
    const stream = multiplexer.createStream();
    const replies = collect(stream);
    stream.write(packet(80877103));
    await until(() => replies() === 'N');
    stream.write(packet(80877102, Buffer.alloc(8)));
    await until(() => stream.destroyed);
    expect(replies()).toBe('N');
  });

  test('sends and receives values of 3 MB', async () => {
    const text = 'x'.repeat(3_000_000);
    const { rows } = await pool().query('SELECT $1::text AS back', [text]);
    expect(rows[0].back === text).toBe(true);
  });
});

test('timers run while queries do', async () => {
  let hasFired = false;
  const timer = setTimeout(() => (hasFired = true), 1);
  const queries = pool();
  await until(async () => (await queries.query('SELECT 1')).rows.length === 1 && hasFired);
  clearTimeout(timer);
});

function packet(code: number, body = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length, 0);
  head.writeInt32BE(code, 4);
  return Buffer.concat([head, body]);
}

function startup(): Buffer {
  return packet(196608, Buffer.from('user\0postgres\0\0'));
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  return () => text;
}
