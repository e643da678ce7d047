import { withDataSource } from '../database/data-source-options.js';
import { createIndexes, pendingMigrations, pendingSql, runMigrations, usherMigrations } from '../database/migrator.js';
import { isDatabaseDown, isOutOfTime } from '../database/errors.js';
import { isQueueMissing, migrateQueue, pendingQueueSql } from '../queue/queue-connections.js';
import { StartUpError } from '../values/start-up-error.js';
import type { Config } from './settings/settings.js';

export interface Migrated {
  migrations: string[];
  queue: boolean;
}

export interface MigrationStatus {
  migrations: { name: string; isDone: boolean }[];
  /** Null where the queue is on Redis and needs no tables. */
  isQueueDone: boolean | null;
}

/** Migrates the database, and a queue on Postgres. `onWait` is called if another process migrates at the moment. */
export function migrate(config: Config, onWait: () => void = () => undefined): Promise<Migrated> {
  return withDataSource(config, 'migration', [], async (dataSource, embedded) => {
    const migrations = await runMigrations(dataSource, onWait).catch((error: unknown) => {
      throw isDatabaseDown(error) && !isOutOfTime(error) ? error : failed(error);
    });
    return { migrations, queue: await migrateQueue(config, embedded) };
  });
}

/** Creates the indexes that migrations have left out, because the tables are large. Returns their names. */
export const migrateIndexes = (config: Config, onWait: () => void): Promise<string[]> =>
  withDataSource(config, 'migration', [], (dataSource) => createIndexes(dataSource, onWait));

/** Which migrations the database has. It changes nothing. */
export function migrationStatus(config: Config): Promise<MigrationStatus> {
  return withDataSource(config, 'migration', [], async (dataSource, embedded) => {
    const pending = await pendingMigrations(dataSource);
    const migrations = usherMigrations.map(({ name }) => ({ name, isDone: !pending.includes(name) }));
    const hasTables = config.queue.kind !== 'redis';
    return { migrations, isQueueDone: hasTables ? !(await isQueueMissing(config, embedded)) : null };
  });
}

/** The SQL of what {@link migrate} would do, statement by statement. It changes nothing. */
export const migrationSql = (config: Config): Promise<string[]> =>
  withDataSource(config, 'migration', [], async (dataSource, embedded) => [
    ...(await pendingSql(dataSource)),
    ...(await pendingQueueSql(config, embedded)),
  ]);

/** One line. TypeORM's error has a stack and the whole statement. */
function failed(error: unknown): StartUpError {
  const [reason] = (error as Error).message.split('\n');
  return new StartUpError(`a migration failed: ${reason}; correct this, then run "usher migrate" again`);
}
