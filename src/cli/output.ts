import { exactJson } from '../http/exchange.js';
import { fields, type Output, printable, shown } from '../../packages/receiver/dist/tools.js';

export { fields, type Output, printable } from '../../packages/receiver/dist/tools.js';

export function print(asJson: boolean, { json, text, note = null }: Output): void {
  process.stdout.write(`${asJson ? printable(exactJson(json, 2)) : (text ?? fields(json))}\n`);
  if (note !== null) process.stderr.write(`usher: note: ${note}\n`);
}

export const listOf = (json: object[], empty: string): Output => ({ json, text: table(json, empty) });

export function table(rows: object[], empty: string): string {
  const [first] = rows;
  if (!first) return empty;
  const cells = [Object.keys(first), ...rows.map((row) => Object.values(row).map(shown))];
  const widths = Object.keys(first).map((_, column) => Math.max(...cells.map((row) => columnsOf(row[column] ?? ''))));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - columnsOf(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Width of a text in terminal columns. Chinese, Japanese and Korean characters and emoji take two. */
const columnsOf = (text: string): number =>
  [...text.replace(/\p{M}/gu, '')].length +
  (text.match(/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{Emoji_Presentation}]/gu)?.length ?? 0);

/** The same record with names as in `created_at`. */
export const snakeCase = (record: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value as unknown,
    ]),
  );

/** RFC 3339 text in UTC. */
export const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

const STEP = 0.1;

/**
 * Shows the progress of a long command on standard error: a bar on a terminal, otherwise a line for every 10 %. With
 * --json it shows nothing. `work` gets a function that it calls with what is done and the total.
 */
export async function withProgress<T>(
  title: string,
  asJson: boolean,
  work: (show: (done: number, total: number) => void) => Promise<T>,
): Promise<T> {
  if (asJson) return work(() => undefined);
  if (!process.stderr.isTTY) return work(progressLines(title));
  // The default export, because a bundler may give a CommonJS package no other.
  const { Presets, SingleBar } = (await import('cli-progress')).default;
  const bar = new SingleBar(
    // With a hidden cursor, a terminal would have none after Ctrl-C, which ends the process at once.
    { format: `${title} {bar} {percentage}% | {value}/{total}`, stream: process.stderr },
    Presets.shades_classic,
  );
  bar.start(0, 0);
  return work((done, total) => {
    bar.setTotal(total);
    bar.update(done);
  }).finally(() => bar.stop());
}

function progressLines(title: string): (done: number, total: number) => void {
  let shown = 0;
  return (done, total) => {
    const isStep = done > 0 && (done === total || done - shown >= total * STEP);
    if (!isStep || done === shown) return;
    shown = done;
    process.stderr.write(`${title} ${done}/${total}\n`);
  };
}
