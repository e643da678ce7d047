import * as bullmq from 'bullmq';
import type { PoolClient } from 'pg';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { dataSourceOf, isPostgres } from '../database/data-source.js';
import { identifier } from '../options/option-kinds.js';
import { StartUpError } from '../values/start-up-error.js';
import { createLimitTable, postgresSchema } from './postgres-pool.js';

/** The position of this migration among others: TypeORM reads the last 13 characters of its name. */
const TIMESTAMP = 1767225600000;

/** The name of the migration for this prefix and the tables that the installed BullMQ needs. */
export const queueMigrationName = (prefix: string): string =>
  `UsherQueue_${postgresSchema(prefix)}_${TIMESTAMP + bullmq.LATEST_SCHEMA_VERSION}`;

/**
 * A migration for the `migrations` of an application's own `DataSource` on Postgres: the tables in which the installed BullMQ
 * keeps its jobs, and that of the rate limits. When a newer BullMQ needs newer tables, it is pending again, under another name.
 * `prefix`: the option `queue.prefix` of UsherModule; its default is `usher-sandbox` or `usher-production`.
 * @throws StartUpError where the installed BullMQ is older than 6, which keeps no jobs on Postgres
 */
export function usherQueueMigration(options: { prefix: string }): new () => MigrationInterface {
  const { prefix } = Object(options) as typeof options;
  if (identifier.check(prefix) === undefined)
    throw new StartUpError(`usherQueueMigration() needs { prefix }, the option queue.prefix: ${identifier.wanted}`);
  checkKeepsJobsOnPostgres('usherQueueMigration()');
  return class implements MigrationInterface {
    readonly name = queueMigrationName(prefix);

    async up(runner: QueryRunner): Promise<void> {
      if (!isPostgres(dataSourceOf(runner)))
        throw new StartUpError(
          'usherQueueMigration() needs a DataSource on Postgres; remove it, and set queue.url to a Redis',
        );
      const client = (await runner.connect()) as PoolClient;
      const isInside = runner.isTransactionActive;
      const { rows } = await client.query<{ path: string }>(`SELECT current_setting('search_path') AS path`);
      const schema = postgresSchema(prefix);
      await bullmq.runMigrations(isInside ? insideTransaction(client) : client, schema);
      await createLimitTable(client, schema);
      // BullMQ has changed it; the other migrations need the earlier value.
      await client.query(`SELECT set_config('search_path', $1, $2)`, [rows[0]?.path, isInside]);
    }

    /** Keeps the tables, because jobs may be in them. */
    async down(): Promise<void> {}
  };
}

/** BullMQ opens and ends a transaction of its own; this client leaves that to the caller. */
function insideTransaction(client: PoolClient): PoolClient {
  const query = (text: string, values?: unknown[]) =>
    ['BEGIN', 'COMMIT', 'ROLLBACK'].includes(text) ? Promise.resolve({ rows: [] }) : client.query(text, values);
  return { query } as unknown as PoolClient;
}

/** The SQL that brings the tables of the queue from a version to what the installed BullMQ needs. It runs nothing. */
export async function queueSql(version: number, schema: string): Promise<string[]> {
  const statements: string[] = [];
  const query = async (text: string, values: unknown[] = []) => {
    const literal = (position: string) => {
      const value = values[Number(position) - 1];
      return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
    };
    if (!/^\s*SELECT COALESCE/.test(text))
      statements.push(
        values.length === 0 ? text : text.replace(/\$(\d+)/g, (_, position: string) => literal(position)),
      );
    return { rows: [{ version, min_client_version: null }] };
  };
  await bullmq.runMigrations({ query } as unknown as PoolClient, schema, { skipVersionCheck: true });
  await createLimitTable({ query } as unknown as PoolClient, schema);
  return statements;
}

/** BullMQ 5 keeps no jobs on Postgres. `setting` names what needs that. */
export function checkKeepsJobsOnPostgres(setting: string): void {
  if ('PostgresConnection' in bullmq) return;
  throw new StartUpError(
    `${setting}: the installed BullMQ keeps no jobs on Postgres; set the address of a Redis, or run "npm install bullmq@6"`,
  );
}
