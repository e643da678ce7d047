import type { DataSource, EntityManager, EntityTarget, ObjectLiteral } from 'typeorm';
import { valueList } from './row-list.js';
import { dataSourceOf, runStatement } from './statement.js';
import { tableOf } from '../data-source.js';

/**
 * Inserts rows of an entity by one statement, without what TypeORM's own insert does around it. `onConflict` is SQL behind the
 * rows. With a manager it runs in its transaction.
 */
export async function insertRows<T extends ObjectLiteral>(
  on: DataSource | EntityManager,
  target: EntityTarget<T>,
  rows: T[],
  onConflict = '',
): Promise<void> {
  const dataSource = dataSourceOf(on);
  const { columns } = dataSource.getMetadata(target);
  const { driver } = dataSource;
  const values = rows.map((row) =>
    columns.map((column) => driver.preparePersistentValue(column.getEntityValue(row), column) as unknown),
  );
  const names = columns.map(({ databaseName }) => driver.escape(databaseName)).join(', ');
  const { sql, parameters } = valueList(dataSource, values);
  await runStatement(on, {
    text: `INSERT INTO ${tableOf(dataSource, target)} (${names}) VALUES ${sql} ${onConflict}`,
    parameters,
    name: rows.length === 1 ? `usher_insert_${dataSource.getMetadata(target).name}` : undefined,
  });
}
