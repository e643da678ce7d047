import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type {
  DataSource,
  EntityManager,
  EntitySubscriberInterface,
  QueryRunner,
  TransactionCommitEvent,
} from 'typeorm';
import { dataSourceOf, dialectOf } from './data-source.js';
import { Injectable } from '@nestjs/common';

/** The database's time in milliseconds since 1970. */
export async function databaseNow(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<[{ now: string | number }]>(`SELECT ${dialectOf(manager).now} AS now`);
  return Number(row.now);
}

const DEADLOCK_CODES = ['ER_LOCK_DEADLOCK', '40P01', '40001'];
/** Of Postgres: a prepared statement is missing, was prepared by another session, or before its table got another column. */
const NOT_PREPARED_CODES = ['26000', '42P05', '0A000'];
const MAX_TRIES = 5;
const PAUSE_MS = 10;

/** Runs a transaction at READ COMMITTED. After a deadlock it is repeated. */
export const inTransaction = <T>(dataSource: DataSource, work: (manager: EntityManager) => Promise<T>): Promise<T> =>
  retryDeadlocks(() =>
    ownDrivers.has(dataSource.driver)
      ? ownTransaction(dataSource, work)
      : dataSource.transaction('READ COMMITTED', work),
  );

/** Drivers whose sessions are Usher's own: they run several statements in one round trip. */
export const ownDrivers = new WeakSet<object>();

export interface TransactionEnds {
  /** START TRANSACTION, which is sent together with the next statement. Null once it was sent. */
  begin: string | null;
  /** Whether COMMIT was sent together with the last statement. */
  isCommitted: boolean;
}

export const transactionEnds = new WeakMap<QueryRunner, TransactionEnds>();

/** TypeORM's transaction, but START TRANSACTION and COMMIT are sent together with a statement. */
async function ownTransaction<T>(dataSource: DataSource, work: (manager: EntityManager) => Promise<T>): Promise<T> {
  const runner = dataSource.createQueryRunner();
  const query = runner.query.bind(runner);
  const { begin } = dialectOf(dataSource);
  const ends: TransactionEnds = { begin: null, isCommitted: false };
  transactionEnds.set(runner, ends);
  runner.query = (async (text: string, ...others: never[]) => {
    if (text === 'START TRANSACTION') ends.begin = begin;
    else if (['COMMIT', 'ROLLBACK'].includes(text) && (ends.begin !== null || ends.isCommitted)) ends.begin = null;
    else {
      if (ends.begin !== null) await query(ends.begin);
      ends.begin = null;
      return query(text, ...others);
    }
  }) as typeof runner.query;
  return runner.manager.transaction(work).finally(() => runner.release());
}

/** Repeats what a deadlock or a missing prepared statement rolled back, after a pause that grows. */
export async function retryDeadlocks<T>(work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      const isRepeated = DEADLOCK_CODES.includes(codeOf(error)) || isNotPrepared(error) || isSavepointLost(error);
      if (tried >= MAX_TRIES || !isRepeated) throw error;
      // Without a random pause the same transactions would deadlock again.
      await pause(Math.random() * PAUSE_MS * 2 ** tried);
    }
  }
}

/**
 * Waits until all have ended, then rejects if one of them did. `Promise.all()` rejects at once: what still runs would then
 * write after the rollback, outside the transaction.
 */
export async function allEnded<T>(promises: Promise<T>[]): Promise<T[]> {
  if (promises.length > 1) await Promise.allSettled(promises);
  return Promise.all(promises);
}

/**
 * The caller's transaction to join. Without a manager it is the one of typeorm-transactional or of the option `currentManager`;
 * where there is none, Usher uses a transaction of its own.
 */
export interface TransactionOptions {
  /** The entity manager of an open transaction on the same data source. */
  manager?: EntityManager | undefined;
}

type CurrentManager = () => EntityManager | undefined;

const currentManagers = new WeakMap<DataSource, CurrentManager>();

/** Lets {@link joinTransaction} find the transaction in which a caller runs that passes no manager. */
export const findManagersBy = (dataSource: DataSource, current: CurrentManager): unknown =>
  currentManagers.set(dataSource, current);

/** The manager that the caller passes, or that of the open transaction in which it runs. */
export function callersManager(dataSource: DataSource, options: TransactionOptions): EntityManager | undefined {
  if ('repositories' in options) throw new TypeError('pass the entity manager as { manager }');
  const current = currentManagers.get(dataSource)?.();
  return options.manager ?? (current?.queryRunner?.isTransactionActive ? current : undefined);
}

/**
 * Runs `work` in the caller's transaction, or in one of its own.
 * @throws Error where the manager belongs to another data source or has no open transaction
 */
export function joinTransaction<T>(
  dataSource: DataSource,
  transaction: TransactionOptions,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  const manager = callersManager(dataSource, transaction);
  if (!manager) return inTransaction(dataSource, work);
  if (dataSourceOf(manager).driver !== dataSource.driver)
    throw new Error('the entity manager belongs to another data source; pass one of Usher’s, or none');
  if (!manager.queryRunner?.isTransactionActive)
    throw new Error('the entity manager has no open transaction; pass one of an open transaction, or none');
  watch(dataSource);
  const call = work(manager);
  const calls = running.get(manager.queryRunner) ?? new Set();
  running.set(manager.queryRunner, calls.add(call));
  return call.finally(() => calls.delete(call));
}

/** The calls that run in callers' transactions. */
const running = new WeakMap<QueryRunner, Set<Promise<unknown>>>();

/** Whether the prepared statement cannot be used: a pooler lost it, or a migration changed its table. Nothing was run. */
export const isNotPrepared = (error: unknown): boolean => NOT_PREPARED_CODES.includes(codeOf(error));

/** Whether a deadlock that an application hid has rolled the transaction back, and with it the savepoint. Only on MySQL. */
const isSavepointLost = (error: unknown): boolean =>
  codeOf(error) === 'ER_SP_DOES_NOT_EXIST' && messageOf(error).includes('SAVEPOINT');

/** Whether the error says that a row with this key already exists. */
export const isDuplicate = (error: unknown): boolean => ['ER_DUP_ENTRY', '23505'].includes(codeOf(error));

/** Null where a statement found or changed another number of rows than it must; any other error is thrown again. */
export function nullForOtherCount(error: unknown): null {
  // MySQL reports a key that exists instead of leaving the row out.
  if (['ER_DATA_OUT_OF_RANGE', '22P02'].includes(codeOf(error)) || isDuplicate(error)) return null;
  throw error;
}

/** MySQL's and MariaDB's codes of a server that refuses to write; 25006 is Postgres's. */
const READ_ONLY_CODE = /^(ER_READ_ONLY_MODE|ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION|ER_OPEN_AS_READONLY|25006)$/;

/** Whether the server refuses to write: `read_only` is set, or it was a primary and is a replica now. */
export function isReadOnly(error: unknown): boolean {
  const code = codeOf(error);
  // This code is shared by several options of the server; the message names the option.
  if (code === 'ER_OPTION_PREVENTS_STATEMENT') return /read[-_]only/i.test(messageOf(error));
  return READ_ONLY_CODE.test(code);
}

/** Whether the server refuses to write because its disk is full. */
export const isDiskFull = (error: unknown): boolean =>
  ['ER_RECORD_FILE_FULL', 'ER_DISK_FULL', 'ER_DISK_FULL_NOWAIT', '53100'].includes(codeOf(error));

/** Whether a statement ran into its limit of time. It may have waited for one locked row. */
export const isOutOfTime = (error: unknown): boolean =>
  /^(57014|ER_(QUERY|STATEMENT|LOCK_WAIT)_TIMEOUT)$/.test(codeOf(error));

/** Errors of mysql2, pg and the network. SQLSTATE 08…, 25P03 and 57P0… mean a lost connection, 53300 too many of them. */
const DOWN_CODE =
  /^(E[A-Z]*(CONN|TIMEDOUT|PIPE|HOST|NET|NOTFOUND|ADDRNOTAVAIL)|EAI_AGAIN|PROTOCOL_|POOL_|08|25P03|57P0|53300|ER_CON_COUNT|ER_TOO_MANY_USER_CONNECTIONS|ER_USER_LIMIT_REACHED|ER_SERVER_SHUTDOWN|ER_NORMAL_SHUTDOWN|ER_CONNECTION_KILLED|ER_NET_)/;
const DOWN_MESSAGE =
  /Connection terminated|connection timeout|timeout exceeded when trying to connect|Connection is closed|closed state|not queryable/i;
/** TypeORM releases the runner of a Postgres connection that was lost; its next statement fails with such an error. */
const LOST_CONNECTION = ['QueryRunnerAlreadyReleasedError', 'QueryRunnerProviderAlreadyReleasedError'];

/** Whether the database cannot be used now, or a statement {@link isOutOfTime}: it does not answer, refuses connections or writes. */
export function isDatabaseDown(error: unknown): boolean {
  const { name = '' } = (error ?? {}) as Partial<Error>;
  if (DOWN_CODE.test(codeOf(error)) || LOST_CONNECTION.includes(name)) return true;
  return isOutOfTime(error) || isReadOnly(error) || isDiskFull(error) || DOWN_MESSAGE.test(messageOf(error));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '');

/** Empty if the error has no code. */
function codeOf(error: unknown): string {
  const { driverError = error } = (error ?? {}) as { driverError?: unknown };
  const { code, errno } = (driverError ?? {}) as { code?: unknown; errno?: unknown };
  // mysql2 has no name for this error of MariaDB.
  return errno === 1969 ? 'ER_STATEMENT_TIMEOUT' : String(code ?? '');
}

/** What to do when a transaction ends; neither function may throw. `depth`: 1 for a transaction, more for one within it. */
type Callbacks = Record<Outcome, () => void> & { depth: number };
type Outcome = 'onCommit' | 'onRollback';

/** A transaction of Usher's own may be without TypeORM, which counts. */
const depthOf = (runner: QueryRunner): number =>
  (runner as QueryRunner & { transactionDepth?: number }).transactionDepth ?? 1;

const waiting = new WeakMap<QueryRunner, Callbacks[]>();

/** One serves all that use an application's data source, which has new subscribers each time it is opened. */
function watch({ subscribers }: DataSource): void {
  if (!subscribers.some((one) => one instanceof AfterCommit)) subscribers.push(new AfterCommit());
}

/** What a call that a caller does not await sends after COMMIT or ROLLBACK would be committed by itself. */
async function callsEnded({ queryRunner }: TransactionCommitEvent): Promise<void> {
  const calls = running.get(queryRunner);
  // A call in a listener may end a transaction within that of the call. Calls that follow have begun after a turn.
  while (calls?.size && depthOf(queryRunner) === 1) await Promise.allSettled(calls).then(() => nextTurn());
}

/** Runs callbacks after a transaction has ended, whoever opened it. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  /** Runs one of the two after the transaction of `manager` has ended. */
  do(manager: EntityManager, onCommit: () => void, onRollback: () => void = () => undefined): void {
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive)
      throw new Error('the transaction ended while a call of Usher still ran in it; await the call');
    watch(dataSourceOf(manager));
    const callbacks = waiting.get(runner) ?? [];
    callbacks.push({ onCommit, onRollback, depth: depthOf(runner) });
    waiting.set(runner, callbacks);
  }

  beforeTransactionCommit = callsEnded;
  beforeTransactionRollback = callsEnded;
  afterTransactionCommit = ({ queryRunner }: TransactionCommitEvent): void => this.run(queryRunner, 'onCommit');
  afterTransactionRollback = ({ queryRunner }: TransactionCommitEvent): void => this.run(queryRunner, 'onRollback');

  private run(queryRunner: QueryRunner, outcome: Outcome): void {
    // After a nested transaction the outer one is still open.
    const depth = queryRunner.isTransactionActive ? depthOf(queryRunner) : -1;
    const callbacks = waiting.get(queryRunner) ?? [];
    const ended = callbacks.filter((one) => one.depth > depth);
    // A nested transaction that is committed has become a part of the outer one.
    if (depth >= 0 && outcome === 'onCommit') for (const one of ended) one.depth = depth;
    else {
      const others = callbacks.filter((one) => one.depth <= depth);
      waiting.set(queryRunner, others);
      for (const one of ended) one[outcome]();
    }
  }
}
