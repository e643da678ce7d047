import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliDecompressSync, constants, gunzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import type { Facts } from '../fixtures/0.2.0/facts.js';
import { BACKEND, REDIS_URL, type Settings } from './backend.js';
import { OwnDatabase } from './own-database.js';
import { newFolder } from './process.js';

const FIXTURE = resolve('test/fixtures/0.2.0');
/** How long after the load the interrupted notifications are due: time to migrate and to start. */
const LEAD_MS = 8_000;
/** BullMQ on Redis sorts delayed jobs by their time and a counter of 12 bits. */
const DELAYED_SCORE = 0x1000;

type Row = Record<string, unknown>;
type Execute = (sql: string) => Promise<Row[]>;

/** A database that version 0.2.0 has left, loaded as if it had been left a few seconds ago. */
export interface ReleasedDatabase {
  settings: Settings;
  facts: Facts;
  /** The notifications that wait in it: how often each was attempted, and when its next attempt is due, by its reference. */
  pending: Map<string, { attempts: number; dueAt: number }>;
  /** Runs one statement. Not on the embedded database, which a server holds. */
  query(sql: string): Promise<Row[]>;
  drop(): Promise<void>;
}

/** Loads the fixture of this backend, and its queue. All Notify URLs get the port of the test's receiver. */
export async function loadReleased(receiverPort: number): Promise<ReleasedDatabase> {
  const facts = JSON.parse(readFileSync(join(FIXTURE, `${BACKEND}.json`), 'utf8')) as Facts;
  if (BACKEND === 'embedded') return loadFolder(facts, receiverPort);
  const database = await OwnDatabase.create();
  const { DATABASE_URL = '', QUEUE_URL, QUEUE_PREFIX = '' } = database.settings as Settings;
  const queue: Settings = QUEUE_URL === undefined ? {} : { QUEUE_URL, QUEUE_PREFIX };
  const dump = gunzipSync(readFileSync(join(FIXTURE, `${BACKEND}.sql.gz`))).toString();
  const withConnection = BACKEND === 'mariadb' ? withMariadb : withPostgres;
  const { shiftMs, pending } = await withConnection(DATABASE_URL, async (execute) => {
    await execute(dump);
    return moveToPresent(execute, facts, receiverPort);
  });
  if (QUEUE_URL !== undefined) await loadRedis(QUEUE_PREFIX, shiftMs);
  const drop = async (): Promise<void> => {
    await database.drop();
    if (QUEUE_URL !== undefined) await dropQueue(QUEUE_PREFIX);
  };
  return {
    settings: { DATABASE_URL, ...queue, ...facts.settings },
    facts,
    pending,
    query: (sql) => database.query(sql),
    drop,
  };
}

async function loadFolder(facts: Facts, receiverPort: number): Promise<ReleasedDatabase> {
  const folder = newFolder();
  const params = { [constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 1 };
  const tar = brotliDecompressSync(readFileSync(join(FIXTURE, 'embedded.tar.br')), { params });
  execFileSync('tar', ['-x', '-C', folder], { input: tar });
  const embedded = await openEmbeddedPostgres(folder, 'own');
  try {
    const { pending } = await withPostgres(embedded.connection, (execute) =>
      moveToPresent(execute, facts, receiverPort),
    );
    // The folder of the fixture goes with those of all other tests.
    return {
      settings: { DATABASE_URL: `embedded:${folder}` },
      facts,
      pending,
      query: () => Promise.reject(new Error('use the server’s data source')),
      drop: () => Promise.resolve(),
    };
  } finally {
    await embedded.close();
  }
}

async function withPostgres<T>(access: string | pg.ClientConfig, work: (execute: Execute) => Promise<T>): Promise<T> {
  const client = new pg.Client(access);
  await client.connect();
  try {
    return await work(async (sql) => (await client.query<Row>(sql)).rows);
  } finally {
    await client.end();
  }
}

async function withMariadb<T>(uri: string, work: (execute: Execute) => Promise<T>): Promise<T> {
  const connection = await createConnection({ uri, multipleStatements: true, charset: 'utf8mb4_bin' });
  try {
    return await work(async (sql) => (await connection.query(sql))[0] as Row[]);
  } finally {
    await connection.end();
  }
}

/** Columns of 64-bit integers that are no times. */
const NO_TIMES = [
  ...['total_amount', 'booking_amount', 'payable_amount', 'list_position', 'completion_position'],
  ...['clock_ahead', 'duration_ms', 'duration_sum'],
];
const URLS = {
  usher_client: 'notify_url',
  usher_movie_order: 'notify_url',
  usher_webhook: 'notify_url',
  usher_failing_host: 'host',
  usher_delivery_figure: 'host',
  usher_webhook_resend: 'host',
};

/**
 * Adds the time since the fixture was made to every time, so that tokens, sessions, rotations and attempts are as far from
 * their end as they were. Ids stay as they are; they are older than their rows.
 */
async function moveToPresent(execute: Execute, facts: Facts, receiverPort: number) {
  const schema = BACKEND === 'mariadb' ? 'DATABASE()' : `'public'`;
  // The dump's own settings must not decide where the names below are searched.
  if (BACKEND !== 'mariadb') await execute('SET search_path = public');
  const columns = await execute(
    `SELECT table_name AS table_name, column_name AS column_name FROM information_schema.columns
     WHERE table_schema = ${schema} AND data_type = 'bigint' AND table_name <> 'usher_migration'`,
  );
  const shiftMs = Date.now() + LEAD_MS - facts.dueAt;
  const changes = new Map<string, string[]>();
  for (const { table_name, column_name } of columns) {
    const [table, name] = [String(table_name), String(column_name)];
    if (!NO_TIMES.includes(name)) changes.set(table, [...(changes.get(table) ?? []), `${name} = ${name} + ${shiftMs}`]);
  }
  for (const [table, assignments] of changes) await execute(`UPDATE ${table} SET ${assignments.join(', ')}`);
  if (BACKEND !== 'mariadb') await execute(laterJobs(shiftMs));
  for (const [table, column] of Object.entries(URLS))
    await execute(
      `UPDATE ${table} SET ${column} = REPLACE(${column}, ':${facts.receiverPort}', ':${receiverPort}')
       WHERE ${column} LIKE '%:${facts.receiverPort}%'`,
    );
  return { shiftMs, pending: await pendingOf(execute) };
}

/** The tables of BullMQ on Postgres, in the schema that has the name of the queue's prefix. */
function laterJobs(shiftMs: number): string {
  const times = ['added_at_ms', 'process_at_ms', 'processed_at_ms', 'finished_at_ms', 'locked_until_ms'];
  return `UPDATE usher_sandbox.job SET ${times.map((name) => `${name} = ${name} + ${shiftMs}`).join(', ')}`;
}

async function pendingOf(execute: Execute): Promise<ReleasedDatabase['pending']> {
  const rows = await execute(
    `SELECT reference_id, attempts, next_attempt_at FROM usher_webhook WHERE status = 'PENDING'`,
  );
  return new Map(
    rows.map((row) => [
      String(row.reference_id),
      { attempts: Number(row.attempts), dueAt: Number(row.next_attempt_at) },
    ]),
  );
}

type RedisEntry =
  | { key: string; type: 'string'; value: string }
  | { key: string; type: 'hash'; value: Record<string, string> }
  | { key: string; type: 'list' | 'set' | 'zset'; value: string[] };

async function loadRedis(prefix: string, shiftMs: number): Promise<void> {
  const lines = gunzipSync(readFileSync(join(FIXTURE, 'redis.json.gz')))
    .toString()
    .split('\n');
  const redis = new Redis(REDIS_URL);
  const pipeline = redis.pipeline();
  for (const line of lines) {
    const entry = JSON.parse(line) as RedisEntry;
    const key = `{${prefix}}${entry.key}`;
    if (entry.type === 'string') pipeline.set(key, entry.value);
    else if (entry.type === 'hash') pipeline.hset(key, laterJob(entry.value, shiftMs));
    else if (entry.type === 'list') pipeline.rpush(key, ...entry.value);
    else if (entry.type === 'set') pipeline.sadd(key, ...entry.value);
    else pipeline.zadd(key, ...laterScores(entry.key, entry.value, shiftMs));
  }
  await pipeline.exec();
  redis.disconnect();
}

function laterJob(fields: Record<string, string>, shiftMs: number): Record<string, string> {
  const later = { ...fields };
  for (const name of ['timestamp', 'processedOn', 'finishedOn'])
    if (later[name] !== undefined) later[name] = String(Number(later[name]) + shiftMs);
  return later;
}

/** Redis returns members and scores, and takes scores and members. */
function laterScores(key: string, pairs: string[], shiftMs: number): (string | number)[] {
  const shift = key.endsWith(':delayed') ? shiftMs * DELAYED_SCORE : /:(completed|failed)$/.test(key) ? shiftMs : 0;
  return pairs.flatMap((member, at) => (at % 2 === 0 ? [Number(pairs[at + 1]) + shift, member] : []));
}

async function dropQueue(prefix: string): Promise<void> {
  const redis = new Redis(REDIS_URL);
  for await (const keys of redis.scanStream({ match: `{${prefix}}*`, count: 1_000 }) as AsyncIterable<string[]>)
    if (keys.length > 0) await redis.unlink(keys);
  redis.disconnect();
}

/** The jobs of each queue as version 0.2.0 wrote them to Redis, for any backend: their format is the same. */
export function releasedJobs(): { queue: string; id: string; fields: Record<string, string> }[] {
  const lines = gunzipSync(readFileSync(join(FIXTURE, 'redis.json.gz')))
    .toString()
    .split('\n');
  return lines.flatMap((line) => {
    const { key, type, value } = JSON.parse(line) as RedisEntry;
    const [, queue = '', id = ''] = /^:([^:]+):([^:]+)$/.exec(key) ?? [];
    return type === 'hash' && 'data' in value ? [{ queue, id, fields: value }] : [];
  });
}
