import 'reflect-metadata';
import { pathToFileURL } from 'node:url';
import { ConfigService } from '@nestjs/config';
import { DataSource } from 'typeorm';
import { migrateUsherQueue } from 'nest-usher';
import { dataSourceOptions } from './database/data-source-options.js';
import { usherOptions } from './usher-options.js';

/** Runs this application's migrations and Usher's, and creates the tables of Usher's queue on Postgres. */
export async function migrate(config = new ConfigService()): Promise<void> {
  const dataSource = await new DataSource(dataSourceOptions(config)).initialize();
  try {
    await dataSource.runMigrations();
    await migrateUsherQueue(usherOptions(config, dataSource));
  } finally {
    await dataSource.destroy();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await migrate();
