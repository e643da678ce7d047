import { type DynamicModule, Inject, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { DataSource, EntityTarget } from 'typeorm';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';
import { AfterCommit } from './after-commit.js';
import { dataSourceOptions, openDataSource } from './data-source-options.js';
import { USHER_DATA_SOURCE } from './data-source.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './embedded/index.js';
import { migrateOrRefuse } from './migrator.js';

/** Injects the opened embedded database, or null where there is none. */
export const EMBEDDED_POSTGRES = Symbol('EmbeddedPostgres');

const openEmbedded = ({ database }: ResolvedOptions): Promise<EmbeddedPostgres> | null =>
  database.kind === 'embedded' ? openEmbeddedPostgres(database.folder, database.join ? 'join' : 'own') : null;

function withEntities(dataSource: DataSource, entities: EntityTarget<object>[]): DataSource {
  if (entities.every((entity) => dataSource.hasMetadata(entity))) return dataSource;
  throw new StartUpError(
    dataSource.isInitialized
      ? "the DataSource does not have Usher's entities; add usherEntities to its entities"
      : 'the DataSource is not initialized; pass one that is',
  );
}

/** The data source, the application's own or one that Usher opens beside it, and its migrations. */
@Module({})
export class DatabaseModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(EMBEDDED_POSTGRES) private readonly embedded: EmbeddedPostgres | null,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** `entities`: those of a data source that Usher opens itself. */
  static forRoot(entities: EntityTarget<object>[]): DynamicModule {
    const open = async (options: ResolvedOptions, embedded: EmbeddedPostgres | null): Promise<DataSource> =>
      options.database.kind === 'host'
        ? withEntities(options.database.dataSource, entities)
        : openDataSource({ ...(await dataSourceOptions(options, embedded, 'service')), entities } as never, options);
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        { provide: EMBEDDED_POSTGRES, useFactory: openEmbedded, inject: [USHER_OPTIONS] },
        { provide: USHER_DATA_SOURCE, useFactory: open, inject: [USHER_OPTIONS, EMBEDDED_POSTGRES] },
        AfterCommit,
      ],
      exports: [EMBEDDED_POSTGRES, USHER_DATA_SOURCE, AfterCommit],
    };
  }

  /** Runs before the start of any other module, because they need the tables. */
  async onModuleInit(): Promise<void> {
    await migrateOrRefuse(this.dataSource, this.options.database);
  }

  /** The application closes its own data source itself. */
  async onApplicationShutdown(): Promise<void> {
    if (this.options.database.kind !== 'host' && this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.embedded?.close();
  }
}
