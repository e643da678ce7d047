import { type MigrationInterface, type QueryRunner, Table, TableIndex } from 'typeorm';
import { StartUpError } from '../../values/start-up-error.js';
import { dialectOf } from '../data-source.js';
import { tablePath } from './column-types.js';

type Index = [table: string, name: string, columnNames: string[]];

/** What operators look for: orders by booking and transaction, members by the client that acts for them. */
const INDEXES: Index[] = [
  ['usher_movie_order', 'usher_movie_order_booking', ['booking_id']],
  ['usher_movie_order', 'usher_movie_order_transaction', ['transaction_id']],
  ['usher_consent', 'usher_consent_client', ['client_id', 'given_at']],
];
/** A larger table must stay writable while it gets its index, which is not possible in a migration. */
const MOST_ROWS = 10_000;

/** The indexes of large tables are left to {@link createSearchIndexes}. */
export class SearchIndexes1796300000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const { index, invalid } of await withoutValidOnes(runner)) {
      const [table, name, columnNames] = index;
      const path = tablePath(runner, table);
      if ((await runner.hasTable(path)) && (await isLarge(runner, path))) continue;
      if (invalid) await runner.dropIndex(path, invalid);
      await runner.createIndex(new Table({ name: path }), new TableIndex({ name, columnNames }));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const index of INDEXES) {
      const found = await find(runner, index);
      if (found) await runner.dropIndex(tablePath(runner, index[0]), found);
    }
  }
}

async function isLarge(runner: QueryRunner, path: string): Promise<boolean> {
  const [row] = (await runner.query(
    `SELECT 1 AS found FROM ${quoted(runner, path)} LIMIT 1 OFFSET ${MOST_ROWS}`,
  )) as unknown[];
  return row !== undefined;
}

/** Every statement that needs the table waits behind the index meanwhile. */
const TABLE_LOCK_SECONDS = 5;

/** Creates the indexes that are missing while the tables are in use. Returns their names. It can be repeated. */
export async function createSearchIndexes(runner: QueryRunner): Promise<string[]> {
  const { driver, options } = runner.connection;
  const isPostgres = options.type === 'postgres';
  // On Postgres nothing waits behind a concurrent change of an index.
  if (!isPostgres) await runner.query(dialectOf(runner).limitWaiting(TABLE_LOCK_SECONDS));
  const missing = await withoutValidOnes(runner);
  for (const { index, invalid } of missing) {
    const [table, name, columnNames] = index;
    const columns = columnNames.map((column) => driver.escape(column)).join(', ');
    const path = quoted(runner, tablePath(runner, table));
    if (invalid) await runner.query(`DROP INDEX CONCURRENTLY ${quoted(runner, indexPath(runner, index))}`);
    const statement = isPostgres
      ? `CREATE INDEX CONCURRENTLY ${driver.escape(name)} ON ${path} (${columns})`
      : `ALTER TABLE ${path} ADD INDEX ${driver.escape(name)} (${columns}), ALGORITHM=INPLACE, LOCK=NONE`;
    await runner.query(statement).catch((error: unknown) => {
      throw (error as { code?: unknown }).code === 'ER_LOCK_WAIT_TIMEOUT' ? inUse(index) : error;
    });
  }
  return missing.map(({ index: [, name] }) => name);
}

const inUse = ([table, name]: Index): StartUpError =>
  new StartUpError(
    `the index ${name} was not created, because a long transaction, such as a dump, uses ${table}; run ` +
      '"usher migrate --indexes" again when no such transaction runs',
  );

const quoted = ({ connection: { driver } }: QueryRunner, path: string): string =>
  path
    .split('.')
    .map((name) => driver.escape(name))
    .join('.');

/** An index without a valid one in the database. Postgres can have an invalid one, which an interrupted command left. */
interface Missing {
  index: Index;
  invalid: TableIndex | undefined;
}

async function withoutValidOnes(runner: QueryRunner): Promise<Missing[]> {
  const missing: Missing[] = [];
  for (const index of INDEXES) {
    const found = await find(runner, index);
    if (!found || !(await isValid(runner, index))) missing.push({ index, invalid: found });
  }
  return missing;
}

async function find(runner: QueryRunner, [table, name]: Index): Promise<TableIndex | undefined> {
  const found = await runner.getTable(tablePath(runner, table));
  return found?.indices.find((index) => index.name === name);
}

/** Only Postgres can have invalid ones. */
async function isValid(runner: QueryRunner, index: Index): Promise<boolean> {
  if (runner.connection.options.type !== 'postgres') return true;
  const invalid = 'SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid';
  return ((await runner.query(invalid, [quoted(runner, indexPath(runner, index))])) as unknown[]).length === 0;
}

/** In the schema of its table. */
const indexPath = (runner: QueryRunner, [table, name]: Index): string =>
  [...tablePath(runner, table).split('.').slice(0, -1), name].join('.');
