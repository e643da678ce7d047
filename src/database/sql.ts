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
import { isRolledBack } from './errors.js';

/** The database's time in milliseconds since 1970. */
export async function databaseNow(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<[{ now: string | number }]>(`SELECT ${dialectOf(manager).now} AS now`);
  return Number(row.now);
}

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
      await pauseBeforeRepeat(error, tried);
    }
  }
}

async function pauseBeforeRepeat(error: unknown, tried: number): Promise<void> {
  if (tried >= MAX_TRIES || !isRolledBack(error)) throw error;
  // Without a random pause the same transactions would deadlock again.
  await pause(Math.random() * PAUSE_MS * 2 ** tried);
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
  if (options === null) throw new TypeError('the options are null; pass the entity manager as { manager }, or nothing');
  const unknown = options.manager ? undefined : Object.keys(options).find((name) => name !== 'manager');
  if (unknown !== undefined) throw new TypeError(`${unknown} is not an option; pass the entity manager as { manager }`);
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
  const calls = running.get(manager.queryRunner) ?? new Map<Promise<unknown>, number>();
  running.set(manager.queryRunner, calls.set(call, depthOf(manager.queryRunner)));
  return call.finally(() => calls.delete(call));
}

/** The calls that run in callers' transactions, each with the depth at which it began. */
const running = new WeakMap<QueryRunner, Map<Promise<unknown>, number>>();

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

/** A call that its caller does not await would otherwise write after the end of its transaction, outside it. */
async function callsEnded({ queryRunner }: TransactionCommitEvent): Promise<void> {
  const depth = depthOf(queryRunner);
  for (;;) {
    // Not those that began outside: the listener of such a call may end a transaction within it.
    const calls = [...(running.get(queryRunner) ?? [])].filter(([, began]) => began >= depth);
    if (calls.length === 0) return;
    // Calls that follow have begun after a turn.
    await Promise.allSettled(calls.map(([call]) => call)).then(() => nextTurn());
  }
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
