import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { migrate } from '../../src/server/migrate.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { returnFolder, takeFolder } from './embedded-template.js';

/** The backend of the tests: embedded for `npm test`, the others for `npm run test:services`. */
export const BACKEND = process.env.TEST_BACKEND ?? 'embedded';
export const MYSQL_URL = process.env.TEST_MYSQL_URL ?? 'mysql://root@127.0.0.1:3306';
export const REDIS_URL = process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379';
export const POSTGRES_URL = process.env.TEST_POSTGRES_URL ?? 'postgres://postgres@127.0.0.1:5432';

export type Settings = Record<string, string>;

/** A new, migrated backend: its settings, and a function that deletes it. */
export interface Backend {
  settings: Settings;
  drop(): Promise<void>;
}

/** Settings that have a default only with an embedded database. */
const SERVICE_SETTINGS: Settings = {
  USHER_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'ops',
  INTERNAL_USER: 'internal',
  INTERNAL_PASSWORD: 'internal',
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
  DATABASE_POOL: '5',
};

export async function createBackend(): Promise<Backend> {
  if (BACKEND === 'embedded') return embedded();
  const name = `usher_test_${randomBytes(5).toString('hex')}`;
  const backend = BACKEND === 'mariadb' ? await mariadb(name) : await postgres(name);
  await migrate(loadConfig(backend.settings));
  return backend;
}

function embedded(): Backend {
  const folder = takeFolder();
  return { settings: { DATABASE_URL: `embedded:${folder}` }, drop: async () => returnFolder(folder) };
}

async function mariadb(name: string): Promise<Backend> {
  const queuePrefix = name.replaceAll('_', '-');
  await mysql(`CREATE DATABASE ${name}`);
  const settings = {
    DATABASE_URL: `${MYSQL_URL}/${name}`,
    QUEUE_URL: REDIS_URL,
    QUEUE_PREFIX: queuePrefix,
    ...SERVICE_SETTINGS,
  };
  const drop = async (): Promise<void> => {
    await mysql(`DROP DATABASE ${name}`);
    await dropKeys(`*${queuePrefix}*`);
  };
  return { settings, drop };
}

async function postgres(name: string): Promise<Backend> {
  await sql(`CREATE DATABASE ${name}`);
  const settings = { DATABASE_URL: `${POSTGRES_URL}/${name}`, ...SERVICE_SETTINGS };
  return { settings, drop: () => sql(`DROP DATABASE ${name} WITH (FORCE)`) };
}

async function mysql(statement: string): Promise<void> {
  const connection = await createConnection(MYSQL_URL);
  await connection.query(statement);
  await connection.end();
}

async function sql(statement: string): Promise<void> {
  const client = new pg.Client(`${POSTGRES_URL}/postgres`);
  await client.connect();
  await client.query(statement);
  await client.end();
}

async function dropKeys(pattern: string): Promise<void> {
  const redis = new Redis(REDIS_URL);
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 }) as AsyncIterable<string[]>) {
    if (keys.length > 0) await redis.unlink(keys);
  }
  redis.disconnect();
}
