import type { DataSource, EntityManager, EntityTarget, ObjectLiteral } from 'typeorm';
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
  const isPostgres = dataSource.options.type === 'postgres';
  const names = columns.map(({ databaseName }) => driver.escape(databaseName)).join(', ');
  const list = isPostgres ? values.map((_, row) => placeholders(row, columns.length)).join(', ') : '?';
  await runStatement(on, {
    text: `INSERT INTO ${tableOf(dataSource, target)} (${names}) VALUES ${list} ${onConflict}`,
    parameters: isPostgres ? values.flat() : [values],
    name: rows.length === 1 ? `usher_insert_${dataSource.getMetadata(target).name}` : undefined,
  });
}

/** `($1, $2)` for the first row of two columns, `($3, $4)` for the next. */
const placeholders = (row: number, width: number): string =>
  `(${Array.from({ length: width }, (_, column) => `$${row * width + column + 1}`).join(', ')})`;
