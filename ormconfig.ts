import { DataSource } from 'typeorm';
import { loadConfig } from './src/server/settings/settings.js';
import { dataSourceOptions } from './src/database/data-source-options.js';
import { openEmbeddedPostgres } from './src/database/embedded/index.js';
import { usherEntities } from './src/usher.module.js';

/** For TypeORM's own command line (`npm run typeorm -- migration:show`), from the same configuration as the service. */
async function createDataSource(): Promise<DataSource> {
  const config = loadConfig();
  const { database } = config;
  const embedded = database.kind === 'embedded' ? await openEmbeddedPostgres(database.folder, 'join') : null;
  const dataSource = new DataSource({
    ...(await dataSourceOptions(config, embedded, 'migration')),
    entities: usherEntities,
    // The output of the commands is what the logger gets.
    logger: 'advanced-console',
  });
  const destroy = dataSource.destroy.bind(dataSource);
  dataSource.destroy = async () => {
    await destroy();
    await embedded?.close();
  };
  return dataSource;
}

export default createDataSource();
