import type { DataSource } from 'typeorm';

export type ListColumn = 'text' | 'int' | 'bigint';

export interface RowList {
  /** A table expression with the name `v`. */
  sql: string;
  parameters: unknown[];
}

/**
 * Rows as a table expression, so that one statement inserts or finds many. On Postgres its text is the same for any number of
 * rows.
 */
export function rowList(
  { options }: DataSource,
  columns: Record<string, ListColumn>,
  rows: Record<string, unknown>[],
): RowList {
  const names = Object.keys(columns);
  if (options.type === 'postgres') {
    const parameters = names.map((name) => rows.map((row) => row[name]));
    const arrays = names.map((name, index) => `$${index + 1}::${columns[name]}[]`);
    return { sql: `unnest(${arrays.join(', ')}) AS v(${names.join(', ')})`, parameters };
  }
  const parameters = rows.flatMap((row) => names.map((name) => row[name]));
  const first = `SELECT ${names.map((name) => `? AS ${name}`).join(', ')}`;
  const others = ` UNION ALL SELECT ${names.map(() => '?').join(', ')}`.repeat(rows.length - 1);
  return { sql: `(${first}${others}) v`, parameters };
}
