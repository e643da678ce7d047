import type { Measured } from '../harness/row.js';
import { shown, targetOf, verdict } from './numbers.js';

/** The lines of a row as cells, under the titles of the columns. */
function cells({ lines }: Measured): string[][] {
  const columns = [...new Set(lines.flatMap(({ figures }) => Object.keys(figures)))];
  const body = lines.map(({ subject, figures }) => [
    subject,
    ...columns.map((column) => (figures[column] === undefined ? '' : shown(figures[column]))),
  ]);
  return [['', ...columns], ...body];
}

export const checkCells = ({ checks }: Measured): string[][] =>
  checks.map((check) => [check.what, shown(check.value), targetOf(check), verdict(check)]);

/** A row as it is printed: its figures, then its targets. */
export function table(row: Measured): string {
  const targets = row.checks.length > 0 ? `\n\n${aligned([['', 'measured', 'target', ''], ...checkCells(row)])}` : '';
  return `\n${row.name}: ${row.title}\n\n${aligned(cells(row))}${targets}`;
}

/** The first column on the left, the others on the right. */
function aligned(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('   '),
  );
  return lines.map((line) => `  ${line.trimEnd()}`).join('\n');
}
