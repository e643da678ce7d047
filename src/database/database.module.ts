import {
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';
import { AfterCommit } from './after-commit.js';
import { dataSourceOptions, openDataSource } from './data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './embedded/index.js';
import { migrateOrRefuse } from './migrator.js';

/** The opened embedded database, or null where DATABASE_URL names a server. */
export const EMBEDDED_POSTGRES = Symbol('EmbeddedPostgres');

/** 'serve' runs the embedded database itself; 'command' can also join the one of a running server. */
export type DatabaseUse = 'serve' | 'command';

@Module({})
class EmbeddedPostgresModule {
  static forRoot(use: DatabaseUse): DynamicModule {
    const open = ({ database }: ResolvedOptions): Promise<EmbeddedPostgres> | null =>
      database.kind === 'embedded' ? openEmbeddedPostgres(database.folder, use === 'serve' ? 'own' : 'join') : null;
    return {
      module: EmbeddedPostgresModule,
      global: true,
      providers: [{ provide: EMBEDDED_POSTGRES, useFactory: open, inject: [USHER_OPTIONS] }],
      exports: [EMBEDDED_POSTGRES],
    };
  }
}

/** With two default data sources, Nest injects the same one everywhere, so rows would go to the wrong database. */
@Injectable()
class OneDefaultDataSource {
  constructor(modules: ModulesContainer) {
    const holders = [...modules.values()].filter(({ isGlobal, providers }) => isGlobal && providers.has(DataSource));
    if (holders.length < 2) return;
    throw new StartUpError(
      'the application has a default TypeORM data source besides Usher’s; give yours a name, or keep your tables in Usher’s',
    );
  }
}

@Module({ providers: [OneDefaultDataSource, AfterCommit], exports: [AfterCommit] })
export class DatabaseModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(getDataSourceToken()) private readonly dataSource: DataSource,
    @Inject(EMBEDDED_POSTGRES) private readonly embedded: EmbeddedPostgres | null,
    @Inject(USHER_OPTIONS) private readonly config: ResolvedOptions,
  ) {}

  static forRoot(use: DatabaseUse): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      imports: [
        EmbeddedPostgresModule.forRoot(use),
        TypeOrmModule.forRootAsync({
          inject: [USHER_OPTIONS, EMBEDDED_POSTGRES],
          useFactory: async (config: ResolvedOptions, embedded: EmbeddedPostgres | null) => ({
            ...(await dataSourceOptions(config, embedded, 'service')),
            usher: config,
            autoLoadEntities: true,
            toRetry: () => false,
          }),
          // The factory gets only these options, so the configuration is passed inside them.
          dataSourceFactory: (options) => {
            const { usher, ...rest } = options as DataSourceOptions & { usher: ResolvedOptions };
            return openDataSource(rest as DataSourceOptions, usher);
          },
        }),
      ],
    };
  }

  /** Runs before the hooks of all other modules, so they find the tables. */
  async onModuleInit(): Promise<void> {
    await migrateOrRefuse(this.dataSource, this.config.database);
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.embedded?.close();
  }
}
