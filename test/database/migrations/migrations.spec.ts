import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { dataSourceOptions } from '../../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { pendingMigrations } from '../../../src/database/migrator.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { usherEntities } from '../../../src/usher.module.js';
import { type Backend, createBackend } from '../../support/backend.js';

let backend: Backend;
let embedded: EmbeddedPostgres | null;
let dataSource: DataSource;

beforeAll(async () => {
  backend = await createBackend();
  const config = loadConfig(backend.settings);
  embedded = config.database.kind === 'embedded' ? await openEmbeddedPostgres(config.database.folder, 'own') : null;
  const options = {
    ...(await dataSourceOptions(config, embedded, 'migration')),
    entities: usherEntities,
  } as DataSourceOptions;
  dataSource = await new DataSource(options).initialize();
});
afterAll(async () => {
  await dataSource.destroy();
  await embedded?.close();
  await backend.drop();
});

const differences = async (): Promise<string[]> =>
  (await dataSource.driver.createSchemaBuilder().log()).upQueries.map(({ query }) => query);

/** Names of the entities' tables that exist. */
async function tables(): Promise<string[]> {
  const runner = dataSource.createQueryRunner();
  const names = dataSource.entityMetadatas.map(({ tableName }) => tableName);
  const found = await Promise.all(names.map((name) => runner.hasTable(name)));
  await runner.release();
  return names.filter((_, index) => found[index]);
}

describe('the migrations', () => {
  test('create exactly the schema of the entities', async () => {
    expect(await differences()).toEqual([]);
  });

  test('can all be undone and run again', async () => {
    expect(await tables()).toHaveLength(usherEntities.length);
    for (const _ of dataSource.migrations) await dataSource.undoLastMigration();
    expect(await tables()).toEqual([]);
    expect(await pendingMigrations(dataSource)).toHaveLength(dataSource.migrations.length);
    await dataSource.runMigrations();
    expect(await pendingMigrations(dataSource)).toEqual([]);
    expect(await differences()).toEqual([]);
  });
});
