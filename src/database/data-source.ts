import { getDataSourceToken } from '@nestjs/typeorm';
import type pg from 'pg';
import type { DataSource, EntityTarget } from 'typeorm';
import { loadPackage } from '../values/optional-package.js';

/**
 * Injects the `DataSource` that holds Usher's tables: the application's own, or one that Usher opened. It is the one
 * named `usher`, so that `@InjectDataSource('usher')` injects it too.
 */
export const USHER_DATA_SOURCE = getDataSourceToken('usher') as string;

/** The table of an entity as SQL names it, with the schema and the prefix of the data source. */
export const tableOf = (dataSource: DataSource, entity: EntityTarget<object>): string =>
  dataSource
    .getMetadata(entity)
    .tablePath.split('.')
    .map((part) => dataSource.driver.escape(part))
    .join('.');

/** The driver of Postgres. A host whose database is on MySQL and whose queue is on Redis does not install it. */
export const loadPg = async (): Promise<typeof pg> => (await loadPackage('pg', () => import('pg'))).default;
