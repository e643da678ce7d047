import { expect, test } from '@jest/globals';
import type { Pool, PoolClient } from 'pg';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';

test('a queue that became read-only is not ready', async () => {
  const backend = await createBackend();
  const { app } = await serve(loadConfig({ PORT: '0', LOG_LEVEL: 'silent', ...backend.settings, USHER_ROLE: 'api' }));
  const { producer, redis, probe } = app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false });
  await probe();
  if (!redis) {
    const pool = producer as unknown as Pool;
    await onAllConnections(pool, 'SET default_transaction_read_only = on');
    // If another statement of the process was refused before, the pool is closing the connection of this one.
    await expect(probe()).rejects.toThrow(/read-only/);
    await eventually('the queue accepts jobs', async () => {
      await onAllConnections(pool, 'RESET default_transaction_read_only');
      return probe();
    });
  }
  await app.close();
  await backend.drop();
});

/** Runs a statement on each connection that the pool may have. */
async function onAllConnections(pool: Pool, statement: string): Promise<void> {
  const connections: PoolClient[] = [];
  try {
    for (let count = 0; count < (pool.options.max ?? 0); count += 1) connections.push(await pool.connect());
    for (const connection of connections) await connection.query(statement);
  } finally {
    for (const connection of connections) connection.release();
  }
}
