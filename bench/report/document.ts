import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { holds, type Measured } from '../harness/row.js';
import { shown, targetOf } from './numbers.js';
import { plot } from './plot.js';

const DOCUMENT = 'docs/internals/performance.md';
const PLOT = 'docs/internals/performance.svg';

/** What `--json` writes. */
export interface Report {
  machine: Record<string, string>;
  rows: Measured[];
}

/** Replaces the figures in docs/internals/performance.md, and the plot beside it. */
export async function writeDocument(report: Report): Promise<void> {
  let document = readFileSync(DOCUMENT, 'utf8');
  document = replaced(document, 'machine', machineOf(report));
  document = replaced(document, 'targets', targetsOf(report));
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

/** The targets that are missed, as a list, and the number of those that hold. */
function targetsOf({ rows }: Report): string {
  const checks = rows.flatMap(({ name, checks }) => checks.map((check) => ({ name, check })));
  const missed = checks.filter(({ check }) => !holds(check));
  if (missed.length === 0) return `All ${checks.length} targets hold.`;
  const body = missed.map(({ name, check }) => {
    return `- ${name}, ${check.what}: ${shown(check.value)}, target ${targetOf(check)}`;
  });
  return `${missed.length} of ${checks.length} targets are missed:\n\n${body.join('\n')}`;
}

const rowsOf = ({ rows }: Report): string => rows.map((row) => `- \`${row.name}\`, ${keyFigures(row)}`).join('\n');

/** The column that compares with the reference, or the one of the plot. The file of `--json` has all columns. */
function keyFigures({ lines, plotted }: Measured): string {
  const columns = lines.flatMap(({ figures }) => Object.keys(figures));
  const column = columns.find((title) => title.endsWith(' = 1')) ?? plotted;
  const shownLines = lines.flatMap(({ subject, figures }) =>
    figures[column] === undefined ? [] : [`${subject} ${shown(figures[column])}`],
  );
  return `${column}: ${shownLines.join('; ')}`;
}
