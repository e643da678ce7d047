import { expect, test } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { isPgPool } from 'bullmq';
import type { Pool } from 'pg';
import { EMBEDDED_POSTGRES } from '../../src/database/database.module.js';
import type { EmbeddedPostgres } from '../../src/database/embedded/index.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { connectRedis, FAIL_FAST } from '../../src/queue/redis-connection.js';
import { serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { createBackend } from '../support/backend.js';
import { freePort } from '../support/ports.js';
import { TcpProxy } from '../support/tcp-proxy.js';

test('a lost queue connection rejects its statement and does not end the process', async () => {
  const backend = await createBackend();
  const { DATABASE_URL = '', ...settings } = backend.settings;
  const proxy = DATABASE_URL.startsWith('postgres') ? await TcpProxy.to(DATABASE_URL) : null;
  const url = proxy?.through(DATABASE_URL) ?? DATABASE_URL;
  const { app } = await serve(loadConfig({ PORT: '0', LOG_LEVEL: 'silent', DATABASE_URL: url, ...settings }));
  const { producer, redis } = app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false });
  // On Redis no caller holds a connection.
  if (redis) expect(isPgPool(producer)).toBe(false);
  else await holdAndCut(producer as unknown as Pool, () => (proxy ? proxy.cut() : embeddedOf(app).close()));
  proxy?.restore();
  await app.close();
  proxy?.close();
  await backend.drop();
});

test('while Redis is away, a command is rejected with the reason', async () => {
  const url = new URL(`redis://127.0.0.1:${await freePort()}`);
  const redis = await connectRedis({ url, isCluster: false }, FAIL_FAST);
  await expect(redis.set('key', '')).rejects.toThrow('connect ECONNREFUSED');
  await expect(redis.multi().get('key').exec()).rejects.toThrow('connect ECONNREFUSED');
  redis.disconnect();
});

test('while a Redis Cluster is away, a command is rejected with the reason', async () => {
  const url = new URL(`redis://127.0.0.1:${await freePort()}`);
  const cluster = await connectRedis({ url, isCluster: true }, FAIL_FAST);
  await expect(cluster.set('key', '')).rejects.toThrow('no node of the Redis Cluster answers');
  cluster.disconnect();
});

/** Takes a connection as BullMQ takes it: without a listener for its errors. */
async function holdAndCut(pool: Pool, cut: () => unknown): Promise<void> {
  const connection = await pool.connect();
  const running = expect(connection.query('SELECT pg_sleep(60)')).rejects.toThrow(/terminated|ECONNRESET/);
  await cut();
  await running;
  connection.release();
}

const embeddedOf = (app: INestApplication): EmbeddedPostgres =>
  app.get<EmbeddedPostgres>(EMBEDDED_POSTGRES, { strict: false });
