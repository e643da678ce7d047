import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import type { Measured } from '../harness/row.js';
import { BEFORE } from './before.js';
import { shown, targetOf, verdict } from './numbers.js';
import { plot } from './plot.js';
import { cells } from './table.js';

const DOCUMENT = 'docs/performance.md';
const PLOT = 'docs/performance.svg';

/** What `--json` writes. */
export interface Report {
  machine: Record<string, string>;
  rows: Measured[];
}

/** Replaces the figures in docs/performance.md, and the plot beside it. */
export async function writeDocument(report: Report): Promise<void> {
  let document = readFileSync(DOCUMENT, 'utf8');
  document = replaced(document, 'machine', machineOf(report));
  document = replaced(document, 'targets', targetsOf(report));
  document = replaced(document, 'cores', coresOf(report));
  document = replaced(document, 'rows', rowsOf(report));
  writeFileSync(DOCUMENT, await format(document, { ...(await resolveConfig(DOCUMENT)), parser: 'markdown' }));
  writeFileSync(PLOT, plot(report.rows));
  console.log(`${DOCUMENT} and ${PLOT} have the figures now`);
}

/** Replaces what is between the two comments of a part. */
function replaced(document: string, part: string, content: string): string {
  const [begin, end] = [`<!-- ${part}: begin -->`, `<!-- ${part}: end -->`];
  const [before, rest] = document.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`${DOCUMENT} has no part "${part}"`);
  return `${before}${begin}\n\n${content}\n\n${end}${after}`;
}

const machineOf = ({ machine }: Report): string =>
  Object.entries(machine)
    .map(([name, value]) => `- ${name}: ${value}`)
    .join('\n');

function targetsOf({ rows }: Report): string {
  const body = rows.flatMap(({ name, checks }) =>
    checks.map((check) => {
      const before = BEFORE[name]?.[check.what] ?? '–';
      return [name, check.what, before, shown(check.value), targetOf(check), verdict(check)];
    }),
  );
  return markdown([['row', 'what', 'before', 'now', 'target', ''], ...body]);
}

/** What one core does in a second: a second divided by the processor time of one operation. */
function coresOf({ rows }: Report): string {
  const body = rows.flatMap(({ name, lines }) =>
    lines
      .filter(({ isReference, figures }) => !isReference && figures['CPU µs'] !== undefined)
      .map(({ subject, figures }) => [name, subject, shown(figures['CPU µs']!), shown(1e6 / figures['CPU µs']!)]),
  );
  return markdown([['row', 'on', 'CPU µs each', 'a second on one core'], ...body]);
}

const rowsOf = ({ rows }: Report): string =>
  rows.map((row) => `### \`${row.name}\`\n\n${capitalised(row.title)}.\n\n${markdown(cells(row))}`).join('\n\n');

function markdown([head = [], ...body]: string[][]): string {
  const line = (row: string[]): string => `| ${row.join(' | ')} |`;
  const rule = head.map((_, column) => (column === 0 ? '---' : '--:'));
  return [line(head), line(rule), ...body.map(line)].join('\n');
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
