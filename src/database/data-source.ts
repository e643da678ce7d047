import type pg from 'pg';
import type { DataSource, EntityTarget } from 'typeorm';
import { loadPackage } from '../values/optional-package.js';

/**
 * Injects the `DataSource` that holds Usher's tables: the application's own, or one that Usher opened. The value is that of
 * `getDataSourceToken('usher')`, so that `@InjectDataSource('usher')` injects it too.
 */
export const USHER_DATA_SOURCE = 'usherDataSource';

/** The table of an entity as SQL names it, with the schema and the prefix of the data source. */
export const tableOf = (dataSource: DataSource, entity: EntityTarget<object>): string =>
  dataSource
    .getMetadata(entity)
    .tablePath.split('.')
    .map((part) => dataSource.driver.escape(part))
    .join('.');

/** Rejects where the database does not answer, or answers but refuses to write. It changes and locks nothing. */
export async function checkWritable(dataSource: DataSource, entity: EntityTarget<object>): Promise<void> {
  await dataSource.query(`UPDATE ${tableOf(dataSource, entity)} SET id = id WHERE 1 = 0`);
}

/**
 * The same data source, whose reads all go to the primary. TypeORM sends reads outside of a transaction to a replica where
 * `replication` is set. A replica lags, so a token would be unknown just after it was issued.
 */
export function readingFromPrimary(dataSource: DataSource): DataSource {
  const { replication } = dataSource.options as { replication?: unknown };
  if (!replication) return dataSource;
  const view = Object.create(dataSource, { defaultReplicationModeForReads: { value: () => 'master' } }) as DataSource;
  return Object.defineProperty(view, 'manager', { value: view.createEntityManager() });
}

/** The driver of Postgres. A host whose database is on MySQL and whose queue is on Redis does not install it. */
export const loadPg = async (): Promise<typeof pg> => (await loadPackage('pg', () => import('pg'))).default;
