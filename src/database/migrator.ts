import type { DataSource } from 'typeorm';
import type { DatabaseLocation } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';

/** Names of the migrations that the database does not have yet. */
export async function pendingMigrations(dataSource: DataSource): Promise<string[]> {
  const known = dataSource.migrations.map((migration) => migration.name ?? migration.constructor.name);
  if (!(await hasMigrationTable(dataSource))) return known;
  const done = await dataSource.query<{ name: string }[]>('SELECT name FROM usher_migration');
  return known.filter((name) => !done.some((row) => row.name === name));
}

/** Migrates an embedded database. For any other it throws, because only `usher migrate` may change its tables. */
export async function migrateOrRefuse(dataSource: DataSource, { kind }: DatabaseLocation): Promise<void> {
  const pending = await pendingMigrations(dataSource);
  if (pending.length === 0) return;
  if (kind !== 'embedded') {
    throw new StartUpError(`${pending.length} database migration(s) are missing; run "usher migrate" first`);
  }
  await dataSource.runMigrations();
}

async function hasMigrationTable(dataSource: DataSource): Promise<boolean> {
  const runner = dataSource.createQueryRunner();
  try {
    return await runner.hasTable('usher_migration');
  } finally {
    await runner.release();
  }
}
