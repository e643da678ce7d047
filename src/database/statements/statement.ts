import { hash } from 'node:crypto';
import type { Pool as MysqlPool, ResultSetHeader, RowDataPacket } from 'mysql2';
import type { Pool as PgPool } from 'pg';
import type { DataSource, EntityManager, EntityTarget, ObjectLiteral } from 'typeorm';
import { dataSourceOf, dialectOf, isPostgres, tableOf } from '../data-source.js';
import { allEnded, isDiskFull, isDuplicate, isNotPrepared, ownDrivers, transactionEnds } from '../sql.js';
import { PoolSockets } from '../pool-sockets.js';

/** A row as the driver returns it. 64-bit integers may be text. */
export type Row = Record<string, string | number | boolean | null>;

interface StatementResult {
  rows: Row[];
  /** Rows that an INSERT, UPDATE or DELETE wrote. */
  affected: number;
}

export interface Statement {
  /** With `?` on MySQL and `$1` on Postgres. */
  text: string;
  parameters: unknown[];
  /** If its text is always the same: Postgres then parses it once for each connection of Usher's own. */
  name?: string | undefined;
}

/** Writes the SQL of a statement: `parameter` takes a value and returns its placeholder. */
export type WriteSql = (parameter: Parameter) => string;

/** Adds a value to the parameters of a statement, and returns its placeholder. */
export type Parameter = (value: unknown) => string;

/** Runs the statement that `write` makes, as {@link runStatement} does. */
export function runSql(on: DataSource | EntityManager, write: WriteSql, name?: string): Promise<StatementResult> {
  return runStatement(on, statementOf(on, write, name));
}

export function statementOf(on: DataSource | EntityManager, write: WriteSql, name?: string): Statement {
  const parameters: unknown[] = [];
  const { placeholder } = dialectOf(on);
  const text = write((value) => placeholder(parameters.push(value)));
  return { text, parameters, name };
}

/** Drivers behind a pooler that shares sessions between transactions: a statement prepared in one is missing in the next. */
const unprepared = new WeakSet<object>();

/** By driver: the statement that was refused last because the disk of the server is full. */
const refusals = new WeakMap<object, { text: string; error: unknown; at: number }>();
/** A full disk refuses only some statements, so it counts as full until the refused one succeeds, or for this long. */
const FULL_MS = 60_000;

/** Rejects where the database does not answer, or answers but refuses to write. It changes and locks nothing. */
export async function checkWritable(dataSource: DataSource, entity: EntityTarget<object>): Promise<void> {
  await dataSource.query(`UPDATE ${tableOf(dataSource, entity)} SET id = id WHERE 1 = 0`);
  const { error, at } = refusals.get(dataSource.driver) ?? { at: -Infinity };
  if (performance.now() - at < FULL_MS) throw error as Error;
}

/**
 * Runs a statement on the driver itself. A statement by TypeORM's query runner costs twice as much processor time, and by its
 * builder more again, so the statements of the busiest requests run here. With a manager it runs in its transaction.
 */
export async function runStatement(on: DataSource | EntityManager, statement: Statement): Promise<StatementResult> {
  const [result] = await runTogether(on, [statement]);
  return result as StatementResult;
}

/**
 * Runs statements of a transaction in their order, as {@link runStatement} does. A transaction of Usher's own needs one round
 * trip for all of them. If one fails, those after it change nothing. `last`: these are the last ones; Usher's own transaction
 * is committed.
 */
export async function runTogether(
  on: DataSource | EntityManager,
  statements: Statement[],
  last = false,
): Promise<StatementResult[]> {
  const dataSource = dataSourceOf(on);
  const { queryRunner } = on as Partial<EntityManager>;
  const ends = queryRunner && transactionEnds.get(queryRunner);
  // Not in a caller's transaction: Usher cannot repeat it where a pooler has lost the prepared statement.
  const isPrepared = !unprepared.has(dataSource.driver) && (!queryRunner || ends !== undefined);
  const first = ends?.begin ? [{ text: ends.begin, parameters: [] }] : [];
  const all = [...first, ...statements, ...(ends && last ? [{ text: 'COMMIT', parameters: [] }] : [])];
  const { text, parameters } = joined(all);
  dataSource.logger.logQuery(text, parameters);
  try {
    if (ends) ends.begin = null;
    const results = await runOnDriver(on, dataSource, all, isPrepared);
    if (ends) ends.isCommitted = last;
    if (refusals.get(dataSource.driver)?.text === text) refusals.delete(dataSource.driver);
    return results.slice(first.length);
  } catch (error) {
    dataSource.logger.logQueryError(error as Error, text, parameters);
    if (isDiskFull(error)) refusals.set(dataSource.driver, { text, error, at: performance.now() });
    for (const subscriber of dataSource.subscribers)
      if (subscriber instanceof PoolSockets) subscriber.renewAfter(error);
    if (!isPrepared || !isNotPrepared(error)) throw error;
    unprepared.add(dataSource.driver);
    if (ends) throw error;
    return runTogether(on, statements);
  }
}

const joined = (statements: Statement[]): Statement => ({
  text: statements.map(({ text }) => text).join('; '),
  parameters: statements.flatMap(({ parameters }) => parameters),
});

async function runOnDriver(
  on: DataSource | EntityManager,
  dataSource: DataSource,
  statements: Statement[],
  isPrepared: boolean,
): Promise<StatementResult[]> {
  // The connection of the transaction, or the pool.
  const { queryRunner } = on as Partial<EntityManager>;
  const runner = queryRunner ? await queryRunner.connect() : poolOf(dataSource);
  if (!runner) throw new Error('the data source is closed');
  const run = isPostgres(dataSource) ? runOnPostgres : runOnMysql;
  if (ownDrivers.has(dataSource.driver)) return run(runner as never, statements, isPrepared);
  const results: StatementResult[] = [];
  for (const statement of statements) results.push(...(await run(runner as never, [statement], false)));
  return results;
}

/** The driver sends them without waiting for the answers. */
const runOnPostgres = (runner: PgPool, statements: Statement[], isPrepared: boolean): Promise<StatementResult[]> =>
  allEnded(
    statements.map(async ({ text, parameters: values, name }) => {
      const { rows, rowCount } = await runner.query<Row>({ text, values, name: isPrepared ? nameOf(text, name) : '' });
      return { rows, affected: rowCount ?? 0 };
    }),
  );

const names = new Map<string, string>();

/** With a digest of the text: behind a pooler another version of Usher may have prepared another text in the same session. */
function nameOf(text: string, name = ''): string {
  if (name && !names.has(text)) names.set(text, `${name}_${hash('sha256', text).slice(0, 16)}`);
  return names.get(text) ?? '';
}

type MysqlResult = (Row & RowDataPacket)[] | ResultSetHeader;

function runOnMysql(runner: MysqlPool, statements: Statement[]): Promise<StatementResult[]> {
  const { text, parameters } = joined(statements);
  return new Promise((resolve, reject) => {
    runner.query<MysqlResult & RowDataPacket[]>(text, parameters, (error, result) => {
      if (error) return reject(error);
      const results = (statements.length === 1 ? [result] : result) as MysqlResult[];
      resolve(
        results.map((one) =>
          Array.isArray(one) ? { rows: one, affected: 0 } : { rows: [], affected: one.affectedRows },
        ),
      );
    });
  });
}

function poolOf({ driver }: DataSource): object | undefined {
  const { master, pool, poolCluster } = driver as {
    master?: object;
    pool?: object;
    poolCluster?: { of(pattern: string): object };
  };
  return master ?? pool ?? poolCluster?.of('MASTER');
}

/** The entity in a row with all of its columns. */
export function entityOf<T extends ObjectLiteral>(
  on: DataSource | EntityManager,
  target: EntityTarget<T>,
  row: Row,
): T {
  const dataSource = dataSourceOf(on);
  const metadata = dataSource.getMetadata(target);
  const entity = metadata.create() as T;
  for (const column of metadata.columns)
    column.setEntityValue(entity, dataSource.driver.prepareHydratedValue(row[column.databaseName], column));
  return entity;
}

/**
 * Inserts rows of an entity by one statement, without what TypeORM's own insert does around it, and returns how many.
 * `onConflict` is SQL behind the rows. With a manager it runs in its transaction.
 */
export async function insertRows<T extends ObjectLiteral>(
  on: DataSource | EntityManager,
  target: EntityTarget<T>,
  rows: T[],
  onConflict = '',
): Promise<number> {
  const { affected } = await runStatement(on, insertOf(on, target, rows, onConflict));
  return affected;
}

export function insertOf<T extends ObjectLiteral>(
  on: DataSource | EntityManager,
  target: EntityTarget<T>,
  rows: T[],
  onConflict = '',
): Statement {
  const dataSource = dataSourceOf(on);
  const { columns, name } = dataSource.getMetadata(target);
  const { driver } = dataSource;
  const { into, values } = dialectOf(dataSource);
  const { sql, parameters } = values(
    rows.map((row) =>
      columns.map((column) => driver.preparePersistentValue(column.getEntityValue(row), column) as unknown),
    ),
  );
  const names = columns.map(({ databaseName }) => driver.escape(databaseName)).join(', ');
  return {
    text: `INSERT INTO ${into(tableOf(dataSource, target))} (${names}) VALUES ${sql} ${onConflict}`,
    parameters,
    name: rows.length === 1 ? `usher_insert_${name}${onConflict && '_or'}` : undefined,
  };
}

/** Inserts a row unless one with its key exists, and returns whether it did. It waits for a transaction that inserts the same key. */
export async function insertIfAbsent<T extends ObjectLiteral>(
  on: EntityManager,
  target: EntityTarget<T>,
  row: T,
): Promise<boolean> {
  try {
    return (await insertRows(on, target, [row], dialectOf(on).ifAbsent)) === 1;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}
