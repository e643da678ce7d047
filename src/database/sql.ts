import { setTimeout as pause } from 'node:timers/promises';
import type { DataSource, EntityManager } from 'typeorm';

/** SQL for the database's time in milliseconds since 1970. All processes share this clock. */
export function nowExpression(dataSource: DataSource): string {
  return dataSource.options.type === 'postgres'
    ? 'CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint)'
    : "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000";
}

export async function databaseNow(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<[{ now: string | number }]>(`SELECT ${nowExpression(manager.dataSource)} AS now`);
  return Number(row.now);
}

const DEADLOCK_CODES: unknown[] = ['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', '40P01', '40001'];
const MAX_TRIES = 5;
const PAUSE_MS = 10;

/** Runs a transaction at READ COMMITTED. After a deadlock it is repeated, after a pause that grows. */
export async function inTransaction<T>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await dataSource.transaction('READ COMMITTED', work);
    } catch (error) {
      if (tried >= MAX_TRIES || !isDeadlock(error)) throw error;
      // Without a random pause the same transactions would deadlock again.
      await pause(Math.random() * PAUSE_MS * 2 ** tried);
    }
  }
}

/** The caller's transaction to join; without a manager, one of its own. */
export interface TransactionOptions {
  /** The entity manager of an open transaction on the same data source. */
  manager?: EntityManager | undefined;
}

/**
 * Runs `work` in the caller's transaction, or in one of its own.
 * @throws Error where the manager belongs to another data source or has no open transaction
 */
export function joinTransaction<T>(
  dataSource: DataSource,
  { manager }: TransactionOptions,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  if (!manager) return inTransaction(dataSource, work);
  if (manager.dataSource !== dataSource)
    throw new Error('the entity manager belongs to another data source; pass one of Usher’s data source, or none');
  if (!manager.queryRunner?.isTransactionActive)
    throw new Error('the entity manager has no open transaction; pass one of an open transaction, or none');
  return work(manager);
}

const isDeadlock = (error: unknown): boolean => DEADLOCK_CODES.includes(codeOf(error));

/** Whether the error says that a row with this key already exists. */
export const isDuplicate = (error: unknown): boolean => ['ER_DUP_ENTRY', '23505'].includes(String(codeOf(error)));

/** Whether it is a connection error of mysql2, pg or the network. SQLSTATE 08… and 57P0… mean a lost server. */
export function isDatabaseDown(error: unknown): boolean {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : '';
  return (
    (typeof code === 'string' &&
      /^(E[A-Z]*(CONN|TIMEDOUT|PIPE|HOST|NOTFOUND)|PROTOCOL_|POOL_|08|57P0|53300|ER_CON_COUNT|ER_SERVER_SHUTDOWN)/.test(
        code,
      )) ||
    /Connection terminated|connection timeout|timeout exceeded when trying to connect|Connection is closed|closed state/i.test(
      message,
    )
  );
}

function codeOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, driverError } = error as { code?: unknown; driverError?: { code?: unknown } };
  return driverError?.code ?? code;
}
