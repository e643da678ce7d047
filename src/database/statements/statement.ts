import type { DataSource, EntityManager, EntityTarget, ObjectLiteral, QueryRunner } from 'typeorm';
import { dataSourceOf, type Dialect, dialectOf, type OnDataSource, tableOf } from '../data-source.js';
import { PoolSockets } from '../pool-sockets.js';
import { isDiskFull, isDuplicate, isNotPrepared } from '../errors.js';
import { ownDrivers, type TransactionEnds, transactionEnds } from '../sql.js';
import {
  combined,
  joined,
  onConnection,
  type Row,
  runOnDriver,
  type Statement,
  type StatementResult,
  type WriteSql,
  type WrittenStatement,
} from './driver.js';

export type { Row, Statement, WriteSql } from './driver.js';
export type { Parameter } from '../rows.js';

/** Runs the statement that `write` makes, as {@link runStatement} does. */
export const runSql = (on: DataSource | EntityManager, write: WriteSql, name?: string): Promise<StatementResult> =>
  runStatement(on, { write, name });

function written({ write, name }: Statement, { placeholder }: Dialect): WrittenStatement {
  const parameters: unknown[] = [];
  return { text: write((value) => placeholder(parameters.push(value))), parameters, name };
}

/** Drivers that prepare nothing more: a pooler shares their sessions between transactions, or a migration changed a table. */
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

/** Runs statements in one {@link inBareTransaction}. */
export const runAlone = (dataSource: DataSource, statements: Statement[]): Promise<StatementResult[]> =>
  inBareTransaction(dataSource, (manager) => runTogether(manager, statements, true));

/**
 * Runs `work` in a transaction at READ COMMITTED, which is not repeated after a deadlock. All of its statements must be run by
 * functions of this file. A transaction of TypeORM costs a tenth of the processor time of a worker, so in a session of Usher's
 * own there is none. Subscribers learn of its end as they do with TypeORM.
 */
export async function inBareTransaction<T>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  if (!ownDrivers.has(dataSource.driver)) return dataSource.transaction('READ COMMITTED', work);
  const ends: TransactionEnds = { begin: dialectOf(dataSource).begin, isCommitted: false };
  const runner = { isTransactionActive: true } as { -readonly [Name in keyof QueryRunner]: QueryRunner[Name] };
  transactionEnds.set(runner, ends);
  const run = async (connection: object): Promise<T> => {
    runner.connect = () => Promise.resolve(connection);
    const manager = { dataSource, queryRunner: runner } as unknown as EntityManager;
    const result = await work(manager);
    if (ends.begin === null && !ends.isCommitted) await runTogether(manager, [], true);
    return result;
  };
  try {
    return await onConnection(dataSource, run, () => ends.begin === null);
  } finally {
    runner.isTransactionActive = false;
    const event = ends.isCommitted ? 'afterTransactionCommit' : 'afterTransactionRollback';
    for (const subscriber of dataSource.subscribers) void subscriber[event]?.({ queryRunner: runner } as never);
  }
}

/** By runner: how its transaction ends with its next statements, see {@link endWithNext}. */
const endings = new WeakMap<QueryRunner, Ending>();

interface Ending {
  inserted: number;
  statements: Statement[];
}

/**
 * Ends a transaction of Usher's own with its next statements: these ones and COMMIT follow them in the same round trip.
 * `inserted`: how many rows the first of the next statements must insert. With another number the transaction fails, see
 * {@link nullForOtherCount}.
 */
export function endWithNext(manager: EntityManager, inserted: number, statements: Statement[]): void {
  if (manager.queryRunner) endings.set(manager.queryRunner, { inserted, statements });
}

/** Whether the next statements are the last ones, and must insert new rows. */
export const endsWithNext = ({ queryRunner }: EntityManager): boolean =>
  queryRunner !== undefined && endings.has(queryRunner);

/**
 * Runs statements of a transaction in their order, as {@link runStatement} does. A transaction of Usher's own needs one round
 * trip for all of them. If one fails, those after it change nothing. `last`: these are the last ones; Usher's own transaction
 * is committed. On Postgres, last ones of which the first has a number of rows are {@link combined}. The results of checks are left
 * out.
 */
export async function runTogether(
  on: DataSource | EntityManager,
  statements: Statement[],
  last = false,
): Promise<StatementResult[]> {
  const dataSource = dataSourceOf(on);
  const { queryRunner } = on as Partial<EntityManager>;
  const ending = queryRunner && endings.get(queryRunner);
  if (ending) return runEnding(on, queryRunner, ending, statements);
  const ends = queryRunner && transactionEnds.get(queryRunner);
  // Not in a caller's transaction: Usher cannot repeat it where a prepared statement cannot be used.
  const isPrepared = !unprepared.has(dataSource.driver) && (!queryRunner || ends !== undefined);
  const checked = checkedStatements(on, statements, last);
  const sent = checked.flat();
  const { first, commit } = ends ? frameOf(ends, sent, last) : { first: [], commit: [] };
  const all = [...first, ...sent, ...commit].map((statement) => written(statement, dialectOf(on)));
  const whole = joined(all);
  dataSource.logger.logQuery(whole.text, whole.parameters);
  try {
    const results = await runOnDriver(on, dataSource, all, isPrepared);
    if (ends) Object.assign(ends, { begin: null, isCommitted: last });
    if (refusals.get(dataSource.driver)?.text === whole.text) refusals.delete(dataSource.driver);
    let position = first.length;
    return checked.map(({ length }) => (length > 0 && results[(position += length) - length]) || NO_RESULT);
  } catch (error) {
    noteFailure(dataSource, whole, error);
    // A transaction is repeated as a whole.
    if (ends || !isPrepared || !isNotPrepared(error)) throw error;
    return runTogether(on, statements);
  }
}

/** See {@link endWithNext}. */
function runEnding(
  on: DataSource | EntityManager,
  queryRunner: QueryRunner,
  { inserted, statements }: Ending,
  next: Statement[],
): Promise<StatementResult[]> {
  endings.delete(queryRunner);
  const [insert, ...others] = next as [Statement, ...Statement[]];
  return runTogether(on, [{ rows: { changed: inserted }, ...insert }, ...others, ...statements], true);
}

/** What is sent around statements of a transaction of Usher's own. A sole statement is a transaction without it. */
function frameOf(ends: TransactionEnds, statements: Statement[], last: boolean) {
  const { begin } = ends;
  const isSole = last && statements.length === 1 && begin !== null;
  // From now on an error needs a rollback.
  if (!isSole) ends.begin = null;
  return { first: begin && !isSole ? [plain(begin, 'begin')] : [], commit: last && !isSole ? [COMMIT] : [] };
}

const plain = (text: string, name: string): Statement => ({ write: () => text, name: `usher_${name}` });
const COMMIT = plain('COMMIT', 'commit');

function noteFailure(dataSource: DataSource, { text, parameters }: WrittenStatement, error: unknown): void {
  dataSource.logger.logQueryError(error as Error, text, parameters);
  if (isNotPrepared(error)) unprepared.add(dataSource.driver);
  if (isDiskFull(error)) refusals.set(dataSource.driver, { text, error, at: performance.now() });
  for (const subscriber of dataSource.subscribers) if (subscriber instanceof PoolSockets) subscriber.renewAfter(error);
}

const NO_RESULT: StatementResult = { rows: [], affected: 0 };

/** What is sent for each statement: with the check of how many rows it found or changed, if it has one. */
function checkedStatements(on: DataSource | EntityManager, statements: Statement[], last: boolean): Statement[][] {
  const dialect = dialectOf(on);
  if (dialect.check === null && last && statements[0]?.rows)
    return statements.map((_, at) => (at === 0 ? [combined(statements)] : []));
  return statements.map((statement) => (statement.rows ? withCheck(statement, statement.rows, dialect) : [statement]));
}

function withCheck(statement: Statement, rows: object, { check }: Dialect): Statement[] {
  if (check === null) return [combined([statement])];
  const [kind, count] = Object.entries(rows)[0] as ['found' | 'changed', number];
  return [statement, { write: (parameter) => check[kind](parameter(count)) }];
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
export const insertRows = async <T extends ObjectLiteral>(
  on: DataSource | EntityManager,
  target: EntityTarget<T>,
  rows: T[],
  onConflict = '',
): Promise<number> => (await runStatement(on, insertOf(on, target, rows, onConflict))).affected;

export function insertOf<T extends ObjectLiteral>(
  on: OnDataSource,
  target: EntityTarget<T>,
  rows: T[],
  onConflict = '',
): Statement {
  const dataSource = dataSourceOf(on);
  const { columns, name } = dataSource.getMetadata(target);
  const { into, values } = dialectOf(dataSource);
  const cells = rows.map((row) =>
    columns.map((column) => dataSource.driver.preparePersistentValue(column.getEntityValue(row), column) as unknown),
  );
  const names = columns.map(({ databaseName }) => dataSource.driver.escape(databaseName)).join(', ');
  return {
    write: (parameter) =>
      `INSERT INTO ${into(tableOf(dataSource, target))} (${names}) VALUES ${values(parameter, cells)} ${onConflict}`,
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
