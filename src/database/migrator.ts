import type { DataSource } from 'typeorm';
import type { DatabaseLocation } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';
import { Initial1767225600000 } from './migrations/1767225600000-initial.js';

/** Usher's migrations, for the `migrations` of an application's own `DataSource`. None of them sets `transaction`. */
export const usherMigrations = [Initial1767225600000];

/** TypeORM's name of the table, where the data source has no other. */
const DEFAULT_MIGRATIONS_TABLE = 'migrations';

/** Names of Usher's migrations that the database does not have yet. It is read from the primary, and never written to. */
export async function pendingMigrations(dataSource: DataSource): Promise<string[]> {
  const known = usherMigrations.map(({ name }) => name);
  const done = await migrationsDone(dataSource);
  return known.filter((name) => !done.includes(name));
}

async function migrationsDone(dataSource: DataSource): Promise<string[]> {
  const {
    database,
    schema,
    migrationsTableName = DEFAULT_MIGRATIONS_TABLE,
  } = dataSource.options as {
    database?: string;
    schema?: string;
    migrationsTableName?: string;
  };
  const path = dataSource.driver.buildTableName(migrationsTableName, schema, database);
  const runner = dataSource.createQueryRunner('master');
  try {
    if (!(await runner.hasTable(path))) return [];
    const table = path.split('.').map((part) => dataSource.driver.escape(part));
    const rows = (await runner.query(`SELECT name FROM ${table.join('.')}`)) as { name: string }[];
    return rows.map(({ name }) => name);
  } finally {
    await runner.release();
  }
}

/** Migrates an embedded database. For any other it throws, because only its operator may change its tables. */
export async function migrateOrRefuse(dataSource: DataSource, { kind }: DatabaseLocation): Promise<void> {
  const pending = await pendingMigrations(dataSource);
  if (pending.length === 0) return;
  if (kind === 'embedded') {
    await dataSource.runMigrations();
    return;
  }
  const remedy =
    kind === 'host'
      ? 'add usherMigrations to the migrations of your DataSource and run them'
      : 'run "usher migrate" first';
  throw new StartUpError(`${pending.length} database migration(s) are missing (${pending.join(', ')}); ${remedy}`);
}
