import type { PoolClient } from 'pg';

/** Where a queue on Postgres also counts for the rate limits: in the queue's schema, where BullMQ has a `rate_limit` too. */
export const LIMIT_TABLE = 'usher_rate_limit';

/** Not logged: a crash of the database may forget the counts of the last minutes. */
export async function createLimitTable(client: PoolClient, schema: string): Promise<void> {
  await client.query(
    `CREATE UNLOGGED TABLE IF NOT EXISTS "${schema}"."${LIMIT_TABLE}" (
       key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)`,
  );
}
