// npm run bench: each row beside its reference in the same run. docs/internals/performance.md describes it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { cleanUp } from './harness/cleanup.js';
import { machine } from './harness/machine.js';
import { progress, startRow } from './harness/progress.js';
import type { Measured, Row } from './harness/row.js';
import { type Report, writeDocument } from './report/document.js';
import { plot } from './report/plot.js';
import { table } from './report/table.js';
import { attacker } from './rows/attacker.js';
import { consolePages } from './rows/console.js';
import { deliver } from './rows/deliver.js';
import { growth } from './rows/growth.js';
import { guard } from './rows/guard.js';
import { httpRows } from './rows/http.js';
import { idle } from './rows/idle.js';
import { isolation } from './rows/isolation.js';
import { memory } from './rows/memory.js';
import { single } from './rows/single.js';
import { cli, start } from './rows/start.js';
import { workers } from './rows/workers.js';

const ROWS: Row[] = [
  ...httpRows,
  guard,
  deliver,
  workers,
  single,
  isolation,
  growth,
  attacker,
  consolePages,
  memory,
  idle,
  start,
  cli,
];
const NAMES = ROWS.map(({ name }) => name).join(', ');
const RESULTS = 'bench/results';

interface Options {
  quick?: true;
  only?: string;
  backends?: string;
  recorded?: string;
  json?: string;
  markdown?: string;
}

const options = new Command('bench')
  .option('--quick', 'short rounds and small numbers: for a look, not for a comparison')
  .option('--only <names>', `some rows, separated by commas: ${NAMES}`)
  .option('--backends <names>', 'of the row single, separated by commas')
  .option('--recorded <file>', 'fail where a ratio is a quarter above the one in this file')
  .option('--json <file>', `write the figures to this file, instead of ${RESULTS}/figures.json`)
  .option('--markdown <file>', 'measure nothing; write the figures of this file into docs/internals/performance.md')
  .parse()
  .opts<Options>();

if (options.markdown !== undefined) {
  await writeDocument(JSON.parse(readFileSync(options.markdown, 'utf8')) as Report);
} else {
  let isInterrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      isInterrupted = true;
      void endAfterInterruption();
    });
  await measure(chosenRows()).catch(async (error: unknown) => {
    // The stopped servers are what the row fails of.
    // Not the error itself: that of a statement carries all of its parameters.
    if (!isInterrupted) console.error(error instanceof Error ? error.stack : error);
    await cleanUp();
    process.exitCode = isInterrupted ? 130 : 1;
  });
}
// The connections to stopped servers would keep the process alive.
process.exit();

async function measure(rows: Row[]): Promise<void> {
  const effort = options.quick
    ? { rounds: 1, warmUps: 1, seconds: 2, concurrency: 32, isQuick: true, backends: options.backends?.split(',') }
    : { rounds: 3, warmUps: 3, seconds: 4, concurrency: 32, isQuick: false, backends: options.backends?.split(',') };
  const json = options.json ?? `${RESULTS}/figures.json`;
  mkdirSync(RESULTS, { recursive: true });
  const measured: Measured[] = [];
  for (const [index, row] of rows.entries()) {
    startRow(row.name, index + 1, rows.length);
    const { name, title, plotted } = row;
    measured.push({ name, title, plotted, ...(await row.run(effort)) });
    await cleanUp();
    progress('');
    console.log(table(measured.at(-1)!));
    writeFileSync(json, `${JSON.stringify({ machine: await machine(), effort, rows: measured }, null, 2)}\n`);
    writeFileSync(`${RESULTS}/figures.svg`, plot(measured));
  }
  if (options.recorded !== undefined) compare(measured, options.recorded);
  console.log(`\nThe figures are in ${json}, the plot in ${RESULTS}/figures.svg.`);
}

/** Fails where a ratio is a quarter above the recorded one of the same name. The p99 of a short form varies too much to be recorded. */
function compare(measured: Measured[], file: string): void {
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>;
  for (const { what, value } of measured.flatMap(({ checks }) => checks)) {
    if (!(value > 1.25 * (recorded[what] ?? Infinity))) continue;
    console.error(`${what}: ${value.toFixed(2)}, a quarter above the ${recorded[what]} of ${file}`);
    process.exitCode = 1;
  }
}

function chosenRows(): Row[] {
  const names = options.only?.split(',');
  const unknown = names?.find((name) => !ROWS.some((row) => row.name === name));
  if (unknown === undefined) return ROWS.filter(({ name }) => names?.includes(name) ?? true);
  console.error(`there is no row ${unknown}; use one of ${NAMES}`);
  process.exit(2);
}

/** Ends at once: what was measured until now is already written. */
async function endAfterInterruption(): Promise<void> {
  progress('');
  console.error('interrupted; its processes and databases are being removed');
  await cleanUp();
  process.exit(130);
}
