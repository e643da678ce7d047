import { type DataSource, type MigrationInterface, type QueryRunner, Table, TableIndex } from 'typeorm';
import { tablePath } from './column-types.js';

/** What operators look for: orders by booking and transaction, members by the client that acts for them. */
const INDEXES: [table: string, name: string, columnNames: string[]][] = [
  ['usher_movie_order', 'usher_movie_order_booking', ['booking_id']],
  ['usher_movie_order', 'usher_movie_order_transaction', ['transaction_id']],
  ['usher_consent', 'usher_consent_client', ['client_id', 'given_at']],
];
/** A larger table must stay writable while it gets its index, which is not possible in a migration. */
const MOST_ROWS = 10_000;

/** The indexes of large tables are left to {@link createSearchIndexes}. */
export class SearchIndexes1796300000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const [table, name, columnNames] of INDEXES) {
      const path = tablePath(runner, table);
      if ((await runner.hasTable(path)) && (await isLarge(runner, path))) continue;
      await runner.createIndex(new Table({ name: path }), new TableIndex({ name, columnNames }));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, name, columnNames] of await missingIn(runner, false))
      await runner.dropIndex(tablePath(runner, table), new TableIndex({ name, columnNames }));
  }
}

async function isLarge(runner: QueryRunner, path: string): Promise<boolean> {
  const [row] = (await runner.query(
    `SELECT 1 AS found FROM ${quoted(runner, path)} LIMIT 1 OFFSET ${MOST_ROWS}`,
  )) as unknown[];
  return row !== undefined;
}

/** Creates the indexes that are missing while the tables are in use. Returns their names. It can be repeated. */
export async function createSearchIndexes(dataSource: DataSource): Promise<string[]> {
  const runner = dataSource.createQueryRunner('master');
  const isPostgres = dataSource.options.type === 'postgres';
  const { escape } = dataSource.driver;
  try {
    const missing = await missingIn(runner, true);
    for (const [table, name, columnNames] of missing) {
      const columns = columnNames.map((column) => escape(column)).join(', ');
      const path = quoted(runner, tablePath(runner, table));
      // An index that an interrupted attempt has left is invalid.
      if (isPostgres) await runner.query(`DROP INDEX IF EXISTS ${path.replace(/[^.]+$/, () => escape(name))}`);
      await runner.query(
        isPostgres
          ? `CREATE INDEX CONCURRENTLY ${escape(name)} ON ${path} (${columns})`
          : `ALTER TABLE ${path} ADD INDEX ${escape(name)} (${columns}), ALGORITHM=INPLACE, LOCK=NONE`,
      );
    }
    return missing.map(([, name]) => name);
  } finally {
    await runner.release();
  }
}

const quoted = ({ connection: { driver } }: QueryRunner, path: string): string =>
  path
    .split('.')
    .map((name) => driver.escape(name))
    .join('.');

/** The indexes that the database lacks, or those that it has. */
async function missingIn(runner: QueryRunner, isMissing: boolean): Promise<typeof INDEXES> {
  const tables = await Promise.all(INDEXES.map(([table]) => runner.getTable(tablePath(runner, table))));
  return INDEXES.filter(
    ([, name], at) => isMissing !== (tables[at]?.indices.some((index) => index.name === name) ?? false),
  );
}
