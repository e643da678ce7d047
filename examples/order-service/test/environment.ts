import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';

const SERVERS = {
  mariadb: process.env.TEST_MYSQL_URL ?? 'mysql://root@127.0.0.1:3306',
  postgres: process.env.TEST_POSTGRES_URL ?? 'postgres://postgres@127.0.0.1:5432',
};
const REDIS_URL = process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379';

/** Where the tests run: MariaDB with the queues in Redis, or Postgres alone. */
export type Backend = 'mariadb-and-redis' | 'postgres';

/** Creates a database, and sets the environment for it. Call it before the application's modules are imported. */
export async function prepare(backend: Backend, settings: Record<string, string> = {}): Promise<() => Promise<void>> {
  const name = `order_service_${randomBytes(5).toString('hex')}`;
  const type = backend === 'postgres' ? 'postgres' : 'mariadb';
  await administer(type, `CREATE DATABASE ${name}`);
  delete process.env.REDIS_URL;
  Object.assign(process.env, {
    DATABASE_URL: `${SERVERS[type]}/${name}`,
    USHER_MASTER_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    STAFF_SECRET: randomBytes(32).toString('base64'),
    STAFF_PASSWORD: 'popcorn',
    ...(type === 'mariadb' && {
      REDIS_URL,
      QUEUE_PREFIX: `own-${name}`,
      USHER_QUEUE_PREFIX: `usher-${name}`,
    }),
    ...settings,
  });
  return async () => {
    await administer(type, `DROP DATABASE ${name}${type === 'postgres' ? ' WITH (FORCE)' : ''}`);
    if (type === 'mariadb') await dropKeys(name);
  };
}

async function administer(type: 'mariadb' | 'postgres', statement: string): Promise<void> {
  const dataSource = new DataSource({
    type,
    url: SERVERS[type] + (type === 'postgres' ? '/postgres' : '/mysql'),
  } as never);
  await dataSource.initialize();
  await dataSource.query(statement).finally(() => dataSource.destroy());
}

async function dropKeys(name: string): Promise<void> {
  const redis = new Redis(REDIS_URL);
  const keys = await redis.keys(`*${name}*`);
  if (keys.length > 0) await redis.unlink(keys);
  redis.disconnect();
}
