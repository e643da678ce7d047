import { type DynamicModule, Inject, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { DataSource, EntityMetadata, EntityTarget } from 'typeorm';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { StartUpError } from '../values/start-up-error.js';
import { AfterCommit, findManagersBy } from './sql.js';
import { openDataSource } from './data-source-options.js';
import { USHER_DATA_SOURCE, usherView } from './data-source.js';
import { DatabaseClock } from './database-clock.js';
import { type EmbeddedPostgres, GUESTS_LIMIT_MS, openEmbeddedPostgres } from './embedded/index.js';
import { migrateOrRefuse } from './migrator.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** Injects the opened embedded database, or null where there is none. */
export const EMBEDDED_POSTGRES = Symbol('EmbeddedPostgres');

const logger = new Logger('Usher database');

function openEmbedded({ database, role }: ResolvedOptions): Promise<EmbeddedPostgres> | null {
  if (database.kind !== 'embedded') return null;
  const log = (message: string): void => logger.log(message);
  // Only a command waits for others: the shutdown of a server must be quick.
  const guestsLimitMs = role === null ? GUESTS_LIMIT_MS : 0;
  return openEmbeddedPostgres(database.folder, database.join ? 'join' : 'own', { log, guestsLimitMs });
}

/** Why Usher cannot use the application's data source, and what to change. Null if it can. */
function faultOf(dataSource: DataSource, entities: EntityTarget<object>[]): string | null {
  if (!dataSource.isInitialized) return 'the DataSource is not initialized, or was destroyed; pass an open one';
  if (!entities.every((entity) => dataSource.hasMetadata(entity)))
    return "the DataSource does not have Usher's entities; add usherEntities to its entities";
  const { cache, charset = 'utf8mb4' } = dataSource.options as {
    cache?: { alwaysEnabled?: boolean };
    charset?: string;
  };
  if (cache?.alwaysEnabled)
    return (
      'the DataSource answers all queries from its cache, so Usher would read rows that have changed; set cache.alwaysEnabled ' +
      'to false, and cache single queries'
    );
  if (!charset.toLowerCase().startsWith('utf8mb4'))
    return `the DataSource has charset "${charset}", which changes characters of notifications; use "utf8mb4"`;
  const renamed = entities.map((entity) => dataSource.getMetadata(entity)).find(isRenamed);
  return renamed
    ? `the namingStrategy of the DataSource changes names in the table ${renamed.givenTableName}, which the migrations do not; let it ` +
        'keep the name that an entity gives to a table or a column'
    : null;
}

/** Whether a naming strategy changes the name of the table, or of a column. An entityPrefix is allowed. */
const isRenamed = ({ givenTableName, tableNameWithoutPrefix, columns }: EntityMetadata): boolean =>
  tableNameWithoutPrefix !== givenTableName ||
  columns.some(
    ({ givenDatabaseName, propertyName, databaseName }) => databaseName !== (givenDatabaseName ?? propertyName),
  );

/** Usher's view of the application's data source. */
function hostView(
  dataSource: DataSource,
  { currentManager }: ResolvedOptions,
  entities: EntityTarget<object>[],
): DataSource {
  const fault = faultOf(dataSource, entities);
  if (fault !== null) throw new StartUpError(fault);
  const view = usherView(dataSource);
  // Inside `@Transactional()` of typeorm-transactional this is the manager of the transaction.
  findManagersBy(view, currentManager ?? (() => dataSource.manager));
  return view;
}

/** The data source is migrated before anything else gets it. A failed start leaves nothing open. */
async function openMigrated(
  options: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  entities: EntityTarget<object>[],
): Promise<DataSource> {
  const { database } = options;
  let dataSource: DataSource | undefined;
  try {
    dataSource =
      database.kind === 'host'
        ? hostView(database.dataSource, options, entities)
        : await openDataSource(options, embedded, 'service', entities);
    await migrateOrRefuse(dataSource, database);
    return dataSource;
  } catch (error) {
    await close(options, embedded, dataSource);
    throw error;
  }
}

/** The application closes its own data source itself. */
async function close(
  { database }: ResolvedOptions,
  embedded: EmbeddedPostgres | null,
  dataSource: DataSource | undefined,
): Promise<void> {
  if (database.kind !== 'host' && dataSource?.isInitialized) await dataSource.destroy();
  await embedded?.close();
}

/** The data source, the application's own or one that Usher opens beside it, and its migrations. */
@UsherNamedModule({})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(EMBEDDED_POSTGRES) private readonly embedded: EmbeddedPostgres | null,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** `entities`: those of a data source that Usher opens itself. */
  static forRoot(entities: EntityTarget<object>[]): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        { provide: EMBEDDED_POSTGRES, useFactory: openEmbedded, inject: [USHER_OPTIONS] },
        {
          provide: USHER_DATA_SOURCE,
          useFactory: (options: ResolvedOptions, embedded: EmbeddedPostgres | null) =>
            openMigrated(options, embedded, entities),
          inject: [USHER_OPTIONS, EMBEDDED_POSTGRES],
        },
        AfterCommit,
        DatabaseClock,
      ],
      exports: [EMBEDDED_POSTGRES, USHER_DATA_SOURCE, AfterCommit, DatabaseClock],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await close(this.options, this.embedded, this.dataSource);
  }
}
