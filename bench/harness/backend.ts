import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type Connection, createConnection } from 'mysql2/promise';
import pg from 'pg';
import { atEnd } from './cleanup.js';

export const BACKENDS = ['MariaDB + Redis', 'Postgres', 'embedded'] as const;
export type BackendName = (typeof BACKENDS)[number] | 'Postgres + Redis';

/** The bench uses one database of Redis alone, so that it can count the commands there. */
const {
  BENCH_MYSQL_URL = 'mysql://root@127.0.0.1:3306',
  BENCH_REDIS_URL = 'redis://127.0.0.1:6379/7',
  BENCH_POSTGRES_URL = 'postgres://postgres@127.0.0.1:5432',
} = process.env;

/** The settings of a new, empty database and queue. They are removed with the row. */
export async function newBackend(backend: BackendName): Promise<Record<string, string>> {
  const name = `usher_bench_${randomBytes(4).toString('hex')}`;
  if (backend === 'embedded') {
    const folder = mkdtempSync(join(tmpdir(), 'usher-bench-'));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    return { DATABASE_URL: `embedded:${folder}` };
  }
  const queue = backend.endsWith('Redis') && { QUEUE_URL: BENCH_REDIS_URL, QUEUE_PREFIX: newKeyPrefix() };
  if (backend.startsWith('Postgres')) {
    atEnd(async () => void (await onPostgres(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)));
    await onPostgres(`CREATE DATABASE ${name}`);
    return { DATABASE_URL: `${BENCH_POSTGRES_URL}/${name}`, ...queue };
  }
  atEnd(() => onMysql((connection) => connection.query(`DROP DATABASE IF EXISTS ${name}`)));
  await onMysql((connection) => connection.query(`CREATE DATABASE ${name}`));
  return { DATABASE_URL: `${BENCH_MYSQL_URL}/${name}`, ...queue };
}

/** The prefix of keys in Redis, which are removed with the row. */
export function newKeyPrefix(): string {
  const prefix = `usher-bench-${randomBytes(4).toString('hex')}`;
  atEnd(() => dropKeys(`*${prefix}*`));
  return prefix;
}

/** A connection to the bench's database of Redis. It ends with the row. */
export function openRedis(): Redis {
  const redis = new Redis(BENCH_REDIS_URL, { maxRetriesPerRequest: null });
  atEnd(() => redis.disconnect());
  return redis;
}

export const REDIS_URL = BENCH_REDIS_URL;

/** Runs `work` on the MySQL server, or on a database of it. */
export async function onMysql<T>(work: (connection: Connection) => Promise<T>, url = BENCH_MYSQL_URL): Promise<T> {
  const connection = await createConnection(url);
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}

/** Runs a statement on the Postgres server, or on a database of it. */
export async function onPostgres(statement: string, url = `${BENCH_POSTGRES_URL}/postgres`): Promise<pg.QueryResult> {
  const client = new pg.Client(url);
  await client.connect();
  return client.query(statement).finally(() => client.end());
}

async function dropKeys(pattern: string): Promise<void> {
  const redis = new Redis(BENCH_REDIS_URL);
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 }) as AsyncIterable<string[]>) {
    if (keys.length > 0) await redis.unlink(keys);
  }
  redis.disconnect();
}
