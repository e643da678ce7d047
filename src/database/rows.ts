type ListColumn = 'text' | 'int' | 'bigint';
export type Columns = Record<string, ListColumn>;
export type ListRow = Record<string, unknown>;

/** Of one statement. No database takes more than 65,535 parameters. */
export const MAX_IDS = 10_000;

/** Adds a value to the parameters of a statement, and returns its placeholder. MySQL needs them in the order of the text. */
export type Parameter = (value: unknown) => string;

export function postgresRows(parameter: Parameter, columns: Columns, rows: ListRow[]): string {
  const names = Object.keys(columns);
  const [row] = rows;
  if (row && rows.length === 1) {
    const values = names.map((name) => `${parameter(row[name])}::${columns[name]} AS ${name}`);
    return `(SELECT ${values.join(', ')}) AS v`;
  }
  const arrays = names.map((name) => `${parameter(rows.map((one) => one[name]))}::${columns[name]}[]`);
  return `unnest(${arrays.join(', ')}) AS v(${names.join(', ')})`;
}

export function mysqlRows(parameter: Parameter, columns: Columns, rows: ListRow[], longText = ''): string {
  const names = Object.keys(columns).filter((name) => name !== longText);
  const selects = rows.map((row, index) => {
    const values = names.map((name) => `${parameter(row[name])} AS ${name}`);
    return `SELECT ${values.join(', ')}${longText && `, ${index + 1} AS place`}`;
  });
  return `(${selects.join(' UNION ALL ')}) v`;
}

/** What stands for the rows in the text of a statement on MySQL until its values are known. */
const ROWS = '<rows>';

export function mysqlWithRows(
  parameter: Parameter,
  columns: Columns,
  rows: ListRow[],
  write: (rows: string) => string,
  longText = '',
): string {
  const [row, ...others] = rows;
  // In the order of the text, because a value has no number.
  return write(ROWS).replace(/<rows>|\bv\.(\w+)/g, (piece, name: string) => {
    if (others.length === 0) return piece === ROWS ? '' : parameter(row?.[name]);
    if (piece === ROWS) return `${mysqlRows(parameter, columns, rows, longText)} STRAIGHT_JOIN`;
    return name === longText ? `ELT(v.place, ${rows.map((one) => parameter(one[name])).join(', ')})` : piece;
  });
}
