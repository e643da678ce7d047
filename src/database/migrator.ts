import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type ColumnType, type DataSource, MigrationExecutor, type QueryRunner, Table } from 'typeorm';
import type { DatabaseLocation } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';
import { dataSourceOf, dialectOf } from './data-source.js';
import { inTransaction } from './sql.js';
import { tablePath } from './migrations/column-types.js';
import { Initial1767225600000 } from './migrations/1767225600000-initial.js';
import { ProcessKeys1795500000000 } from './migrations/1795500000000-process-keys.js';
import { createSearchIndexes, SearchIndexes1796300000000 } from './migrations/1796300000000-search-indexes.js';
import { UsedForms1796400000000 } from './migrations/1796400000000-used-forms.js';
import { Portal1796500000000 } from './migrations/1796500000000-portal.js';
import { SignedWith1795600000000 } from './migrations/1795600000000-signed-with.js';
import { ResendOutcomes1795700000000 } from './migrations/1795700000000-resend-outcomes.js';
import { DeliveryPauses1796200000000 } from './migrations/1796200000000-delivery-pauses.js';
import { EndedAlarms1795610000000 } from './migrations/1795610000000-ended-alarms.js';

const logger = new Logger('Usher database');

/**
 * Usher's migrations, for the `migrations` of an application's own `DataSource`. None of them sets `transaction`. A bundler may
 * change the names of classes, which the database records; it keeps those of properties.
 */
export const usherMigrations = Object.entries({
  Initial1767225600000,
  ProcessKeys1795500000000,
  SignedWith1795600000000,
  EndedAlarms1795610000000,
  ResendOutcomes1795700000000,
  DeliveryPauses1796200000000,
  SearchIndexes1796300000000,
  UsedForms1796400000000,
  Portal1796500000000,
}).map(([name, migration]) => Object.defineProperty(migration, 'name', { value: name }));

/** Names of Usher's migrations that the database does not have yet. It is read from the primary, and never written to. */
export const pendingMigrations = (dataSource: DataSource): Promise<string[]> => onPrimary(dataSource, pendingOn);

/** Gives `work` a connection to the primary, and releases it afterwards. */
async function onPrimary<T>(dataSource: DataSource, work: (runner: QueryRunner) => Promise<T>): Promise<T> {
  const runner = dataSource.createQueryRunner('master');
  try {
    return await work(runner);
  } finally {
    await runner.release();
  }
}

/** On a connection that is already open, because the pool may have no other. */
async function pendingOn(runner: QueryRunner): Promise<string[]> {
  const dataSource = dataSourceOf(runner);
  const { driver, options } = dataSource;
  const { database, schema } = options as { database?: string; schema?: string };
  const path = driver.buildTableName(tableOf(dataSource), schema, database);
  const table = path.split('.').map((part) => driver.escape(part));
  // First, because another process may create both tables in one transaction at the same moment.
  const hasTables = await runner.hasTable(tablePath(runner, CLIENTS));
  if (!(await runner.hasTable(path))) {
    if (!hasTables) return usherMigrations.map(({ name }) => name);
    throw new StartUpError(
      `the tables of Usher are there, but ${path} is not; set DATABASE_MIGRATION_TABLE (in an application ` +
        'database.migrationTable, or the migrationsTableName of its DataSource) to the table that records migrations; ' +
        'if synchronize made the tables, drop them and run usherMigrations',
    );
  }
  const rows: { name: string }[] = await runner.query(`SELECT name FROM ${table.join('.')}`);
  const done = rows.map(({ name }) => name);
  // Asked again, because another process may have made them since.
  if (
    !hasTables &&
    usherMigrations.some(({ name }) => done.includes(name)) &&
    !(await runner.hasTable(tablePath(runner, CLIENTS)))
  )
    throw new StartUpError(
      `${path} records the migrations of Usher, but this connection sees no table ${tablePath(runner, CLIENTS)}; the tables ` +
        'were dropped, the database user has no rights to them, or they have the entityPrefix or schema of an application, ' +
        'whose tables only that application can use',
    );
  return usherMigrations.map(({ name }) => name).filter((name) => !done.includes(name));
}

const CLIENTS = 'usher_client';

const tableOf = ({ options }: DataSource): string => options.migrationsTableName ?? 'migrations';

/** Migrates an embedded database. For any other it throws, because only its operator may change its tables. */
export async function migrateOrRefuse(dataSource: DataSource, { kind }: DatabaseLocation): Promise<void> {
  const pending = await pendingMigrations(dataSource);
  if (pending.length === 0) return;
  if (kind === 'embedded') {
    logger.log(`creating the tables of Usher: ${pending.join(', ')}`);
    await migrateEmbedded(dataSource);
    logger.log('the database is ready');
    return;
  }
  const remedy =
    kind === 'host'
      ? 'add usherMigrations to the migrations of your DataSource and run them'
      : 'run "usher migrate" first';
  throw new StartUpError(`${pending.length} database migration(s) are missing (${pending.join(', ')}); ${remedy}`);
}

/** In one transaction, which the embedded database runs alone, because another process may have found the same ones pending. */
function migrateEmbedded(dataSource: DataSource): Promise<unknown> {
  return inTransaction(dataSource, ({ queryRunner }) =>
    new MigrationExecutor(dataSource, queryRunner).executePendingMigrations(),
  );
}

/**
 * The SQL of the pending migrations, with the rows that record them, for an application that migrates with another tool. It reads
 * which tables the database has, and writes nothing.
 */
export const pendingSql = (dataSource: DataSource): Promise<string[]> =>
  onPrimary(dataSource, async (runner) => {
    const pending = await pendingOn(runner);
    const migrations = usherMigrations.filter(({ name }) => pending.includes(name));
    runner.enableSqlMemory();
    if (migrations.length > 0) await runner.createTable(migrationTable(dataSource), true);
    for (const Migration of migrations) await new Migration().up(runner);
    const { escape } = dataSource.driver;
    const insert = `INSERT INTO ${escape(tableOf(dataSource))} (${escape('timestamp')}, ${escape('name')}) VALUES`;
    const rows = migrations.map(({ name }) => `${insert} (${name.slice(-TIMESTAMP_LENGTH)}, '${name}')`);
    return [...runner.getMemorySql().upQueries.map(({ query }) => query), ...rows];
  });

const TIMESTAMP_LENGTH = 13;

/** As TypeORM creates it. */
function migrationTable(dataSource: DataSource): Table {
  const { driver } = dataSource;
  const { migrationId, migrationTimestamp, migrationName } = driver.mappedDataTypes;
  const column = (name: string, type: ColumnType) => ({ name, type: driver.normalizeType({ type }) });
  const id = { isGenerated: true, generationStrategy: 'increment', isPrimary: true } as const;
  return new Table({
    name: tableOf(dataSource),
    columns: [
      { ...column('id', migrationId), ...id },
      column('timestamp', migrationTimestamp),
      column('name', migrationName),
    ],
  });
}

const LOCK_POLL_MS = 500;
/** A migration waits at most this long for a table, because every query of that table waits behind it. */
const TABLE_LOCK_SECONDS = 10;

/** Runs the pending migrations, and returns their names. `onWait` is called if another process migrates. */
export const runMigrations = (dataSource: DataSource, onWait: () => void): Promise<string[]> =>
  migratingAlone(dataSource, onWait, async (runner) => {
    await pendingOn(runner);
    await runner.query(dialectOf(dataSource).limitWaiting(TABLE_LOCK_SECONDS));
    const executor = new MigrationExecutor(dataSource, runner);
    // In one transaction they would hold the locks of several tables, and deadlock with deliveries.
    executor.transaction = 'each';
    const executed = await executor.executePendingMigrations();
    return executed.map(({ name }) => name);
  });

/** Creates the indexes that the migrations have left out, and returns their names. `onWait` is as of {@link runMigrations}. */
export const createIndexes = (dataSource: DataSource, onWait: () => void): Promise<string[]> =>
  migratingAlone(dataSource, onWait, async (runner) => {
    if ((await pendingOn(runner)).length < usherMigrations.length) return createSearchIndexes(runner);
    throw new StartUpError('the database has no tables of Usher yet; run "usher migrate" first');
  });

/** One process at a time. The lock ends with the connection, so a process that was killed does not leave it behind. */
const migratingAlone = <T>(
  dataSource: DataSource,
  onWait: () => void,
  work: (runner: QueryRunner) => Promise<T>,
): Promise<T> =>
  onPrimary(dataSource, async (runner) => {
    await lockMigrations(runner, onWait);
    return work(runner);
  });

/** Polls: a session that waits inside Postgres would block `CREATE INDEX CONCURRENTLY`. */
async function lockMigrations(runner: QueryRunner, onWait: () => void): Promise<void> {
  const { lockMigrations: tryLock } = dialectOf(runner);
  for (let tries = 0; ; tries += 1) {
    const [row] = (await runner.query(tryLock)) as [{ locked: string | number }];
    if (Number(row.locked) === 1) return;
    if (tries === 1) onWait();
    await pause(LOCK_POLL_MS);
  }
}
