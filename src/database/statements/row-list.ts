import type { DataSource } from 'typeorm';

/** A condition behind a column: its value is one of these. */
export const isOneOf = ({ options }: DataSource, parameter: (value: unknown) => string, values: string[]): string =>
  options.type === 'postgres' ? `= ANY(${parameter(values)})` : `IN (${parameter(values)})`;

/** Rows behind VALUES. Each has its columns in the order of the statement. */
export function valueList({ options }: DataSource, rows: unknown[][]): RowList {
  if (options.type !== 'postgres') return { sql: '?', parameters: [rows] };
  let count = 0;
  const tuples = rows.map((row) => `(${row.map(() => `$${(count += 1)}`).join(', ')})`);
  return { sql: tuples.join(', '), parameters: rows.flat() };
}

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
  const parameters: unknown[] = [];
  for (const row of rows) for (const name of names) parameters.push(row[name]);
  const first = `SELECT ${names.map((name) => `? AS ${name}`).join(', ')}`;
  const others = ` UNION ALL SELECT ${names.map(() => '?').join(', ')}`.repeat(rows.length - 1);
  return { sql: `(${first}${others}) v`, parameters };
}
