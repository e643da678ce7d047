import type { ResultSetHeader, RowDataPacket } from 'mysql2';
import type { Connection } from 'mysql2/promise';
import { onMysql } from '../harness/backend.js';

/** Few enough for MariaDB to keep them in memory. */
const AT_ONCE = 2_000;

/** What differs from the template in each copy: the values by column. */
export type Changes = Record<string, string | number | null>;

/** Inserts many rows that are copies of one that Usher wrote, so that they are complete whatever columns a table has. */
export class BulkRows {
  constructor(private readonly databaseUrl: string) {}

  /** Copies the row of `table` whose `key` is `template`. Every one of `copies` changes the same columns. */
  async copy(table: string, key: string, template: string, copies: Iterable<Changes>): Promise<void> {
    await onMysql(async (connection) => {
      const found = `SELECT * FROM ${table} WHERE ${key} = ?`;
      const [[row]] = await connection.query<RowDataPacket[]>(found, [template]);
      if (!row) throw new Error(`${table} has no row ${template}`);
      for (const page of pages(copies)) await insert(connection, table, row, page);
    }, this.databaseUrl);
  }

  async query(statement: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    return onMysql(async (connection) => {
      const [rows] = await connection.query<RowDataPacket[]>(statement, values);
      return rows;
    }, this.databaseUrl);
  }
}

/** The changes reach the server as one JSON document, because a statement has only 65,535 parameters. */
async function insert(connection: Connection, table: string, template: RowDataPacket, copies: Changes[]) {
  const columns = Object.keys(template);
  // A change of a column that the table does not have is left out.
  const changed = Object.keys(copies[0]!).filter((column) => columns.includes(column));
  const paths = changed.map((column, index) => `${column} VARCHAR(100) PATH '$[${index}]'`);
  await connection.query<ResultSetHeader>(
    `INSERT INTO ${table} (${columns.join(', ')})
     SELECT ${columns.map((column) => (changed.includes(column) ? column : '?')).join(', ')}
     FROM JSON_TABLE(?, '$[*]' COLUMNS (${paths.join(', ')})) AS copies`,
    [
      ...columns.filter((column) => !changed.includes(column)).map((column) => template[column] as unknown),
      JSON.stringify(copies.map((copy) => changed.map((column) => copy[column]))),
    ],
  );
}

function* pages(copies: Iterable<Changes>): Generator<Changes[]> {
  let page: Changes[] = [];
  for (const copy of copies) {
    page.push(copy);
    if (page.length === AT_ONCE) {
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}
