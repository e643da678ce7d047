import type { DataSource, EntityManager } from 'typeorm';
import { dataSourceOf, dialectOf, isPostgres } from './data-source.js';
import { ownDrivers } from './sql.js';

interface Session {
  query(sql: string, callback: () => void): void;
  on(event: 'error', listener: () => void): void;
}

interface Pool {
  on(event: string, listener: (session: Session) => void): void;
}

/** By driver: how long a statement may take in a session of Usher's own, in milliseconds. */
const statementLimits = new WeakMap<object, number>();

/**
 * A process that is suspended in the middle of a transaction, or has lost its power, keeps its row locks for no longer. A slow
 * listener of an application, which runs in a transaction, does not take so long.
 */
export const IDLE_TRANSACTION_MS = 120_000;

interface SessionLimits {
  /** How long a statement may take. */
  statementMs: number;
  /** How long a transaction may wait for its next statement. MySQL, unlike MariaDB, has no such limit. */
  idleMs: number;
}

/**
 * Prepares the sessions of a data source that Usher has just opened. Those of an application keep their isolation level and
 * their limits. The database itself ends what exceeds a limit; 0: never.
 */
export async function prepareSessions(dataSource: DataSource, { statementMs, idleMs }: SessionLimits): Promise<void> {
  const { driver } = dataSource;
  const { pool, master = pool } = driver as { pool?: Pool; master?: Pool };
  const { isolate, limitIdle, limitStatements } = dialectOf(dataSource);
  const limits = [statementMs > 0 && limitStatements(statementMs), idleMs > 0 && limitIdle(idleMs)];
  const statements = [isolate, ...limits].filter(Boolean).join('; ');
  if (statementMs > 0) statementLimits.set(driver, statementMs);
  ownDrivers.add(driver);
  // A session runs its statements in order, so these come before all others.
  master?.on(isPostgres(dataSource) ? 'connect' : 'connection', (session) => {
    ignoreErrors(session);
    session.query(statements, () => undefined);
  });
  // TypeORM has already opened one session.
  const runner = dataSource.createQueryRunner();
  try {
    ignoreErrors((await runner.connect()) as Session);
    await runner.query(statements);
  } finally {
    await runner.release();
  }
}

/**
 * A cut connection of Postgres can report several errors. The first one fails its statements and removes it from the pool; an error
 * that nobody listens to would end the process.
 */
const ignoreErrors = (session: Session): void => session.on('error', () => undefined);

/** Runs `work` in a transaction whose statements have no limit but that of their connection: nobody waits for them. */
export async function withoutLimit<T>(manager: EntityManager, work: () => Promise<T>): Promise<T> {
  const limitMs = statementLimits.get(dataSourceOf(manager).driver);
  if (limitMs === undefined) return work();
  const { limitStatements } = dialectOf(manager);
  await manager.query(limitStatements(0));
  // After an error Postgres refuses it, but the rollback undoes the first one.
  return work().finally(() => manager.query(limitStatements(limitMs)).catch(() => undefined));
}
