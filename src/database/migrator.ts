import type { DataSource } from 'typeorm';
import type { DatabaseLocation } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';

/** Names of the migrations that the database lacks. */
export async function pendingMigrations(dataSource: DataSource): Promise<string[]> {
  const known = dataSource.migrations.map((migration) => migration.name ?? migration.constructor.name);
  if (!(await hasMigrationTable(dataSource))) return known;
  const done = await dataSource.query<{ name: string }[]>('SELECT name FROM usher_migration');
  return known.filter((name) => !done.some((row) => row.name === name));
}

/** An embedded database migrates itself; any other is brought up to date by `usher migrate` alone. */
export async function bringUpToDate(dataSource: DataSource, { kind }: DatabaseLocation): Promise<void> {
  const pending = await pendingMigrations(dataSource);
  if (pending.length === 0) return;
  if (kind !== 'embedded') {
    throw new StartUpError(`the database lacks ${pending.length} migration(s); run "usher migrate" first`);
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
