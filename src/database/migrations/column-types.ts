import type { QueryRunner, TableColumnOptions, TableIndexOptions } from 'typeorm';

type Column = Partial<TableColumnOptions>;

/** A table of the initial migration that another file describes. */
export type NewTable = [name: string, columns: TableColumnOptions[], indices?: TableIndexOptions[]];

/**
 * Column definitions for a migration on any of the databases. On MySQL and MariaDB text is compared byte by byte, as on
 * Postgres. With their default collation, two keys that differ only in case would be equal.
 */
export function columnsFor(runner: QueryRunner) {
  const binary = runner.connection.options.type === 'postgres' ? {} : { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
  return {
    text: (name: string, length: number, more: Column = {}) => ({
      name,
      type: 'varchar',
      length: String(length),
      ...binary,
      ...more,
    }),
    longText: (name: string, more: Column = {}) => ({ name, type: 'text', ...binary, ...more }),
    wholeNumber: (name: string, more: Column = {}) => ({ name, type: 'bigint', ...more }),
    smallNumber: (name: string, more: Column = {}) => ({ name, type: 'int', ...more }),
  };
}

/** The table with the schema and the prefix that the data source gives its entities. */
export const tablePath = (runner: QueryRunner, name: string): string =>
  runner.connection.entityMetadatas.find(({ tableNameWithoutPrefix }) => tableNameWithoutPrefix === name)?.tablePath ??
  name;

/** Most rows have no owner. Only Postgres can leave them out of the index; MySQL ignores `where`. */
export const ofOwners = (index: TableIndexOptions): TableIndexOptions => ({ ...index, where: 'owner_id IS NOT NULL' });
