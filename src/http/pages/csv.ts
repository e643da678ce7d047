import { type Columns, valueOf } from './parts.js';

const MAX_ROWS = 100_000;

/** The lines of a CSV file (RFC 4180): the columns that have values, and at most 100,000 rows; the last line says if there are more. */
export async function* csvLines<Row>(columns: Columns<Row>, parts: AsyncIterable<Row[]>): AsyncGenerator<string> {
  const shown = Object.entries(columns).flatMap(([name, column]) => {
    const value = valueOf(column);
    const isTime = typeof column !== 'function' && column.time !== undefined;
    return value ? [{ name, value, isTime }] : [];
  });
  yield line(shown.map(({ name }) => name));
  let count = 0;
  for await (const rows of parts) {
    if (count >= MAX_ROWS) return void (yield line([`The file ends after ${count} rows. Give a narrower filter.`]));
    yield rows.map((row) => line(shown.map(({ value, isTime }) => cell(value(row), isTime)))).join('');
    count += rows.length;
  }
}

const line = (cells: string[]): string => `${cells.map((text) => `"${text.replaceAll('"', '""')}"`).join(',')}\r\n`;

/** A spreadsheet would run a text that begins like a formula. */
function cell(value: string | number | null, isTime: boolean): string {
  if (value === null) return '';
  if (isTime) return new Date(value).toISOString();
  return typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
}
