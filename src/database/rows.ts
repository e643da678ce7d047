type ListColumn = 'text' | 'int' | 'bigint';
export type Columns = Record<string, ListColumn>;
export type ListRow = Record<string, unknown>;

/** A piece of SQL with the values of its placeholders. */
export interface RowList {
  sql: string;
  parameters: unknown[];
}

export function postgresRows(columns: Columns, rows: ListRow[]): RowList {
  const names = Object.keys(columns);
  const [row] = rows;
  if (row && rows.length === 1) {
    const values = names.map((name, index) => `$${index + 1}::${columns[name]} AS ${name}`);
    return { sql: `(SELECT ${values.join(', ')}) AS v`, parameters: names.map((name) => row[name]) };
  }
  const arrays = names.map((name, index) => `$${index + 1}::${columns[name]}[]`);
  return {
    sql: `unnest(${arrays.join(', ')}) AS v(${names.join(', ')})`,
    parameters: names.map((name) => rows.map((row) => row[name])),
  };
}

export function mysqlRows(columns: Columns, rows: ListRow[], longText = ''): RowList {
  const names = Object.keys(columns).filter((name) => name !== longText);
  const values = names.map((name) => `? AS ${name}`).join(', ');
  const selects = rows.map((_, index) => `SELECT ${values}${longText && `, ${index + 1} AS place`}`);
  return {
    sql: `(${selects.join(' UNION ALL ')}) v`,
    parameters: rows.flatMap((row) => names.map((name) => row[name])),
  };
}

/** What stands for the rows in the text of a statement on MySQL until its values are known. */
const ROWS = '<rows>';

export function mysqlWithRows(
  columns: Columns,
  rows: ListRow[],
  write: (rows: string) => string,
  longText = '',
): RowList {
  const table = mysqlRows(columns, rows, longText);
  const [row, ...others] = rows;
  const parameters: unknown[] = [];
  const add = (values: unknown[], sql: string): string => {
    parameters.push(...values);
    return sql;
  };
  // In the order of the text, because a value has no number.
  const sql = write(ROWS).replace(/<rows>|\bv\.(\w+)/g, (piece, name: string) => {
    if (others.length === 0) return piece === ROWS ? '' : add([row?.[name]], '?');
    if (piece === ROWS) return add(table.parameters, `${table.sql} STRAIGHT_JOIN`);
    if (name !== longText) return piece;
    return add(
      rows.map((one) => one[name]),
      `ELT(v.place, ${rows.map(() => '?').join(', ')})`,
    );
  });
  return { sql, parameters };
}
