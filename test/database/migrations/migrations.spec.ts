import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { Consent } from '../../../src/clients/authorization.entity.js';
import { dataSourceOptions } from '../../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { createIndexes, pendingMigrations, runMigrations } from '../../../src/database/migrator.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { usherEntities } from '../../../src/usher.module.js';
import { type Backend, createBackend } from '../../support/backend.js';

let backend: Backend;
let embedded: EmbeddedPostgres | null;
let dataSource: DataSource;

beforeAll(async () => {
  backend = await createBackend();
  // A migration needs no second connection.
  const config = loadConfig({ ...backend.settings, DATABASE_POOL: '1' });
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

const createMissing = (): Promise<string[]> => createIndexes(dataSource, () => undefined);

async function undoSearchIndexes(): Promise<void> {
  const names = dataSource.migrations.map((migration) => migration.constructor.name);
  const first = names.findIndex((name) => name.startsWith('SearchIndexes'));
  for (const _ of names.slice(first)) await dataSource.undoLastMigration();
}

describe('the migrations', () => {
  test('create exactly the schema of the entities', async () => {
    expect(await differences()).toEqual([]);
  });

  test('can all be undone and run again', async () => {
    expect(await tables()).toHaveLength(usherEntities.length);
    for (const _ of dataSource.migrations) await dataSource.undoLastMigration();
    expect(await tables()).toEqual([]);
    await expect(createMissing()).rejects.toThrow('run "usher migrate" first');
    expect(await pendingMigrations(dataSource)).toHaveLength(dataSource.migrations.length);
    await runMigrations(dataSource, () => undefined);
    expect(await pendingMigrations(dataSource)).toEqual([]);
    expect(await differences()).toEqual([]);
  });

  test('leave the indexes of large tables to a command that can be repeated', async () => {
    const rows = Array.from({ length: 10_001 }, (_, n) => ({ ownerId: `owner-${n}`, clientId: 'c', givenAt: n }));
    for (let at = 0; at < rows.length; at += 1_000)
      await dataSource.manager.insert(Consent, rows.slice(at, at + 1_000));
    await undoSearchIndexes();
    await dataSource.runMigrations();
    expect(await differences()).toEqual([expect.stringContaining('usher_consent_client')]);
    expect(await createMissing()).toEqual(['usher_consent_client']);
    expect(await differences()).toEqual([]);
    expect(await createMissing()).toEqual([]);
  });

  test('keep an index that is there, from an interrupted migration or from the command', async () => {
    await undoSearchIndexes();
    expect(await createMissing()).toHaveLength(3);
    await dataSource.runMigrations();
    expect(await pendingMigrations(dataSource)).toEqual([]);
    expect(await differences()).toEqual([]);
  });

  test('replace an index that an interrupted command has left invalid', async () => {
    // Other databases have no such indexes.
    const isPostgres = dataSource.options.type === 'postgres';
    if (isPostgres)
      await dataSource.query(
        `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'usher_movie_order_booking'::regclass`,
      );
    expect(await createMissing()).toEqual(isPostgres ? ['usher_movie_order_booking'] : []);
    expect(await createMissing()).toEqual([]);
    expect(await differences()).toEqual([]);
  });
});
