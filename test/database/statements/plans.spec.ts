import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../../src/database/data-source.js';
import { eventually } from '../../support/eventually.js';
import { TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';

/** Above the number of uses after which Postgres keeps the plan of a prepared statement. */
const ORDERS = 30;
const TABLES = ['usher_movie_order', 'usher_webhook', 'usher_webhook_attempt', 'usher_delivery_figure'];

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  // A retry run may scan a small table.
  usher = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24h' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('in a new database, where Postgres knows no sizes of tables, no statement of an order or a delivery scans a table', async () => {
  const isOnPostgres = isPostgres(usher.dataSource);
  // Postgres counts the rows of a table after 50 changes. Then it scans tables this small, which is right.
  if (isOnPostgres)
    for (const table of TABLES) await usher.dataSource.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  const client = await usher.client(receiver.url);
  for (let order = 0; order < ORDERS; order += 1) await usher.webhook(await client.completedOrder(), 'SUCCESS');
  if (!isOnPostgres) return;
  const reads = async () => {
    await usher.dataSource.query('SELECT pg_stat_force_next_flush()');
    return usher.dataSource.query<{ relname: string; scanned: string; found: string }[]>(
      `SELECT relname, seq_tup_read AS scanned, idx_scan AS found FROM pg_stat_user_tables
       WHERE schemaname = current_schema() AND relname = ANY($1)`,
      [TABLES],
    );
  };
  const rows = await eventually('Postgres has written its counts', async () => {
    const rows = await reads();
    return rows.length === TABLES.length && rows.every(({ found }) => Number(found) >= ORDERS) ? rows : null;
  });
  for (const { scanned } of rows) expect(Number(scanned)).toBeLessThan(ORDERS);
});
