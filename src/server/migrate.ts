import type { DataSource } from 'typeorm';
import { dataSourceOptions, openDataSource } from '../database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../database/embedded/index.js';
import { pendingMigrations } from '../database/migrator.js';
import { migrateQueue } from '../queue/queue-connections.js';
import type { Config } from './settings/settings.js';

/** Migrates the database, and a queue on Postgres. Returns the names of the migrations that were run. */
export async function migrate(config: Config): Promise<string[]> {
  const embedded =
    config.database.kind === 'embedded' ? await openEmbeddedPostgres(config.database.folder, 'join') : null;
  try {
    const dataSource = await openDataSource(await dataSourceOptions(config, embedded, 'migration'), config);
    return await migrateBoth(dataSource, config, embedded).finally(() => dataSource.destroy());
  } finally {
    await embedded?.close();
  }
}

async function migrateBoth(dataSource: DataSource, config: Config, embedded: EmbeddedPostgres | null) {
  const pending = await pendingMigrations(dataSource);
  await dataSource.runMigrations();
  await migrateQueue(config, embedded);
  return pending;
}
