import type pg from 'pg';
import type { DataSource, EntityManager, EntityTarget, Logger, QueryRunner } from 'typeorm';
import { loadPackage } from '../values/start-up-error.js';
import { type Columns, type ListRow, mysqlRows, mysqlWithRows, type Parameter, postgresRows } from './rows.js';

/**
 * Injects the `DataSource` that holds Usher's tables: the application's own, or one that Usher opened. The value is that of
 * `getDataSourceToken('usher')`, so that `@InjectDataSource('usher')` injects it too.
 */
export const USHER_DATA_SOURCE = 'usherDataSource';

const ignore = (): void => undefined;
/** Prints nothing: TypeORM's loggers print a failed migration where commands print their result, or statements with secrets. */
export const SILENT: Logger = {
  logQuery: ignore,
  logQueryError: ignore,
  logQuerySlow: ignore,
  logSchemaBuild: ignore,
  logMigration: ignore,
  log: ignore,
};

/** A data source, or a manager or query runner of one. */
export type OnDataSource = DataSource | EntityManager | QueryRunner;

/** Their data source. TypeORM 0.3 names it `connection`. */
export function dataSourceOf(on: OnDataSource): DataSource {
  const { dataSource, connection } = on as { dataSource?: DataSource; connection?: DataSource };
  return dataSource ?? connection ?? (on as DataSource);
}

/** The table of an entity as SQL names it, with the schema and the prefix of the data source. */
export function tableOf(on: OnDataSource, entity: EntityTarget<object>): string {
  const dataSource = dataSourceOf(on);
  let tables = tablesBySource.get(dataSource);
  if (!tables) tablesBySource.set(dataSource, (tables = new Map()));
  let table = tables.get(entity);
  if (table === undefined) tables.set(entity, (table = escapedTable(dataSource, entity)));
  return table;
}

/** The names that were looked up. For each, TypeORM looks through all of its entities. */
const tablesBySource = new WeakMap<DataSource, Map<EntityTarget<object>, string>>();

function escapedTable(dataSource: DataSource, entity: EntityTarget<object>): string {
  const parts = dataSource.getMetadata(entity).tablePath.split('.');
  return parts.map((part) => dataSource.driver.escape(part)).join('.');
}

/**
 * An application's data source as Usher uses it. Its reads go to the primary: a replica lags, so a token would be unknown just
 * after it was issued. Its manager is never that of a caller: in a method with `@Transactional()`, typeorm-transactional puts the
 * transaction into `dataSource.manager`, and what several requests share must not run in the transaction of one.
 */
export function usherView(dataSource: DataSource): DataSource {
  const view = Object.create(dataSource, { defaultReplicationModeForReads: { value: () => 'master' } }) as DataSource;
  return Object.defineProperty(view, 'manager', { value: view.createEntityManager() });
}

/**
 * The driver of Postgres. A host whose database is on MySQL and whose queue is on Redis does not install it.
 * @internal
 */
export const loadPg = async (): Promise<typeof pg> => (await loadPackage('pg', () => import('pg'))).default;

const assigned = (changes: [name: string, value: string][]): string =>
  changes.map(([name, value]) => `${name} = ${value}`).join(', ');

/** A statement without parameters. */
interface Plain {
  write: () => string;
}

/** Where the SQL of Postgres differs from that of MySQL and MariaDB. */
const POSTGRES = {
  /** The database's time in milliseconds since 1970. All processes share this clock. */
  now: 'CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint)',

  begin: 'START TRANSACTION ISOLATION LEVEL READ COMMITTED',

  /**
   * Prepares a session of Usher's own. Its level is also that of statements without a transaction around them. Without
   * JIT, because compiling took up to two fifths of the time of the console's large statements.
   */
  isolate: 'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET jit = off',

  /**
   * Sent with the first and with the last statement of a transaction whose errors an application may hide. The second one
   * fails if such an error, a deadlock, has rolled the transaction back. Postgres then refuses every statement.
   */
  savepoint: { set: [] as Plain[], release: [] as Plain[] },

  /** `position` begins with 1. */
  placeholder: (position: number) => `$${position}`,

  /**
   * A condition after a column: its value is one of these. A sole value is not given as a list, so that its statement can be
   * prepared.
   */
  isOneOf: (parameter: Parameter, values: string[]) =>
    values.length === 1 ? `= ${parameter(values[0])}` : `= ANY(${parameter(values)})`,

  /** Rows after VALUES. Each has its columns in the order of the statement. */
  values: (parameter: Parameter, rows: unknown[][]) =>
    rows.map((row) => `(${row.map(parameter).join(', ')})`).join(', '),

  /**
   * Rows as a table expression with the name `v`, so that one statement inserts or finds many. A sole row is given
   * without lists, as in {@link POSTGRES.isOneOf}.
   */
  rows: postgresRows,

  /**
   * A statement over rows `v`. `write` gets what stands before the first table that is joined to them. It adds no parameters of
   * its own, because they would come before those of the rows. `longText` is a column of long texts. On MySQL the values of a
   * sole row, and the long texts of several rows, stand where the statement names them: a temporary table of the rows is slow,
   * and one with long texts is written to the disk.
   */
  withRows: (
    parameter: Parameter,
    columns: Columns,
    rows: ListRow[],
    write: (rows: string) => string,
    _longText = '',
  ) => write(`${postgresRows(parameter, columns, rows)} CROSS JOIN`),

  /** After INSERT INTO: the table, with the name by which `upsert` finds the stored row. */
  into: (table: string) => `${table} AS t`,

  /**
   * After the inserted rows: if a key exists, the stored row gets the given values of these columns instead, or what
   * `valueOf` makes of the stored and the given value.
   */
  upsert: (key: string[], columns: string[], valueOf = (_stored: string, given: string) => given) => {
    const changes = assigned(columns.map((name) => [name, valueOf(`t.${name}`, `EXCLUDED.${name}`)]));
    return `ON CONFLICT (${key.join(', ')}) DO ${changes === '' ? 'NOTHING' : `UPDATE SET ${changes}`}`;
  },

  /** After an inserted row: does nothing if its key exists. MySQL reports only the error {@link isDuplicate}. */
  ifAbsent: 'ON CONFLICT DO NOTHING',

  /** Updates the rows `t` of a table whose id is in the rows `v`, where a further condition without parameters is true. */
  update: (
    parameter: Parameter,
    table: string,
    columns: Columns,
    rows: ListRow[],
    changes: Record<string, string>,
    condition = '',
  ) => {
    const set = assigned(Object.entries(changes));
    return `UPDATE ${table} t SET ${set} FROM ${postgresRows(parameter, columns, rows)} WHERE t.id = v.id ${condition}`;
  },

  /** An index hint after a table. Without it MySQL may scan the table, and lock every row that it reads. */
  byIndex: (_name: string) => '',

  /** The columns of ORDER BY with which an index is read in its order. Postgres also needs those with equal values. */
  orderBy: (equal: string[], others: string[]) => [...equal, ...others],

  /** Locks only the rows of this table: for an update, or against changes by others. */
  lock: (table: string, against?: 'change') => `FOR ${against ? 'KEY SHARE' : 'UPDATE'} OF ${table}`,

  /**
   * A statement that fails unless the one before it changed, or found, as many rows as the placeholder says. Null: a statement
   * checks itself, see {@link combined}.
   */
  check: null as Record<'changed' | 'found', (count: string) => string> | null,

  /** In {@link combined} statements: the rows of the first one, for the others. Null: they read them again. */
  rowsOfFirst: 's1' as string | null,

  /** The host and port in a column with URLs, in lower case. */
  authorityOf: (column: string) => `lower(substring(${column} from '^[^/]*//([^/?]*)'))`,

  /** Selects 1 as `locked` if this connection now holds the lock of migrations. Without a schema, a migration says what is wrong. */
  lockMigrations: `SELECT CASE WHEN pg_try_advisory_lock(hashtext('usher migrate'), hashtext(COALESCE(current_schema(), '')))
    THEN 1 ELSE 0 END AS locked`,

  /** A statement that limits how long this connection waits for a table. */
  limitWaiting: (seconds: number) => `SET lock_timeout = '${seconds}s'`,

  /** A statement that limits how long the statements of this connection may take; 0: not at all. */
  limitStatements: (ms: number) => `SET statement_timeout = ${ms}`,

  /** A statement that limits how long a transaction of this connection may wait for its next statement. MySQL has no such limit. */
  limitIdle: (ms: number) => `SET idle_in_transaction_session_timeout = ${ms}`,
};

export type Dialect = typeof POSTGRES;

/** 2^64 - 1. */
const LARGEST_INTEGER = '18446744073709551615';

const MYSQL: Dialect = {
  now: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
  // Usher's sessions are at READ COMMITTED.
  begin: 'START TRANSACTION',
  // mysql2 escapes values with backslashes, which a server in the mode NO_BACKSLASH_ESCAPES takes for characters of a text.
  // With skip-character-set-client-handshake a server ignores the character set that mysql2 asks for.
  isolate: `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET NAMES utf8mb4 COLLATE utf8mb4_bin;
    SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', sql_safe_updates = 0`,
  savepoint: {
    set: [{ write: () => 'SAVEPOINT usher_completion' }],
    release: [{ write: () => 'RELEASE SAVEPOINT usher_completion' }],
  },
  placeholder: () => '?',
  isOneOf: (parameter, values) => `IN (${parameter(values)})`,
  values: (parameter, rows) => parameter(rows),
  rows: mysqlRows,
  withRows: mysqlWithRows,
  into: (table) => table,
  // Setting a column to its own value changes nothing.
  upsert: (key, columns, valueOf = (_stored, given) => given) => {
    const changes = assigned(columns.map((name) => [name, valueOf(name, `VALUES(${name})`)]));
    return `ON DUPLICATE KEY UPDATE ${changes || assigned(key.map((name) => [name, name]))}`;
  },
  ifAbsent: '',
  update: (parameter, table, columns, rows, changes, condition = '') => {
    const set = assigned(Object.entries(changes).map(([name, value]) => [`t.${name}`, value]));
    const write = (from: string) =>
      `UPDATE ${from} ${table} t FORCE INDEX (PRIMARY) SET ${set} WHERE t.id = v.id ${condition}`;
    return mysqlWithRows(parameter, columns, rows, write);
  },
  byIndex: (name) => `FORCE INDEX (${name})`,
  orderBy: (_equal, others) => others,
  // The sum exceeds the largest integer if the counts differ. A subquery in its place costs the server three times as much.
  check: {
    changed: (count) => `SELECT ${LARGEST_INTEGER} + (ROW_COUNT() <> ${count})`,
    found: (count) => `SELECT ${LARGEST_INTEGER} + (FOUND_ROWS() <> ${count})`,
  },
  rowsOfFirst: null,
  lock: (_table, against) => (against ? 'LOCK IN SHARE MODE' : 'FOR UPDATE'),
  authorityOf: (column) =>
    `LOWER(SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(${column}, '/', 3), '/', -1), '?', 1))`,
  lockMigrations: `SELECT GET_LOCK(CONCAT('usher migrate ', MD5(DATABASE())), 0) AS locked`,
  limitWaiting: (seconds) => `SET SESSION lock_wait_timeout = ${seconds}`,
  // Each server reads its own comment. MySQL's time limit ends no writes, so a second one limits how long they wait for a
  // lock.
  limitStatements: (ms) =>
    `SET SESSION /*M! max_statement_time = ${ms / 1_000} */
     /*!50708 max_execution_time = ${ms}, innodb_lock_wait_timeout = ${Math.ceil(ms / 1_000) || 50} */`,
  // The default of the second variable, because MySQL, which skips the first one, needs an assignment.
  limitIdle: (ms) => `SET SESSION /*M! idle_transaction_timeout = ${Math.ceil(ms / 1_000)}, */ autocommit = 1`,
};

export const isPostgres = ({ options }: DataSource): boolean => options.type === 'postgres';

export const dialectOf = (on: OnDataSource): Dialect => (isPostgres(dataSourceOf(on)) ? POSTGRES : MYSQL);
