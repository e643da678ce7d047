import { expect, test } from '@jest/globals';
import type { Pool } from 'pg';
import { EMBEDDED_POSTGRES } from '../../src/database/database.module.js';
import type { EmbeddedPostgres } from '../../src/database/embedded/index.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { BACKEND, createBackend } from '../support/backend.js';
import { TcpProxy } from '../support/tcp-proxy.js';

// On MariaDB the queue is on Redis, and ioredis has no connection that a caller holds.
if (BACKEND !== 'mariadb')
  test('a lost queue connection rejects its statement and does not end the process', holdAndCut);

async function holdAndCut(): Promise<void> {
  const backend = await createBackend();
  const { DATABASE_URL = '', ...settings } = backend.settings;
  const proxy = DATABASE_URL.startsWith('postgres') ? await TcpProxy.to(DATABASE_URL) : null;
  const url = proxy?.through(DATABASE_URL) ?? DATABASE_URL;
  const { app } = await serve(loadConfig({ PORT: '0', LOG_LEVEL: 'silent', DATABASE_URL: url, ...settings }));
  const { producer } = app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false });

  // Taken from the pool as BullMQ takes it: without a listener for the errors of the connection.
  const connection = await (producer as unknown as Pool).connect();
  const running = expect(connection.query('SELECT pg_sleep(60)')).rejects.toThrow(/terminated|ECONNRESET/);
  if (proxy) proxy.cut();
  else await app.get<EmbeddedPostgres>(EMBEDDED_POSTGRES, { strict: false }).close();
  await running;
  connection.release();
  proxy?.restore();
  await app.close();
  proxy?.close();
  await backend.drop();
}
