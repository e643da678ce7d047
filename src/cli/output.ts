import { styleText } from 'node:util';
import { exactJson } from '../http/exchange.js';

/**
 * Replaces each control or format character except a newline by its \\u escape: text of others must not control the terminal.
 * A JSON document keeps its meaning.
 */
export const printable = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    // Without the flag u, which takes the two halves of a surrogate pair as one.
    character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );

/** Text of others within a line: a newline is replaced too. */
export const printableLine = (text: string): string => printable(text).replaceAll('\n', '\\n');

/** What a command prints: one JSON document with --json, else the text. Without a text, the fields of the document are it. */
export interface Output {
  json: object;
  text?: string;
  /** A line on standard error behind it. */
  note?: string | null;
}

export function print(asJson: boolean, { json, text, note = null }: Output): void {
  process.stdout.write(`${asJson ? printable(exactJson(json, 2)) : (text ?? fields(json))}\n`);
  if (note !== null) process.stderr.write(`usher: note: ${note}\n`);
}

/** Rows as one table, or `empty` if there are none. */
export const listOf = (json: object[], empty: string): Output => ({ json, text: table(json, empty) });

/** Aligned `name  value` lines. Null is shown as a dash. */
export function fields(record: object): string {
  const entries = Object.entries(record).map(([name, value]) => [printableLine(name), shown(value)] as const);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** Aligned rows with headings, or `empty` if there are no rows. */
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

const shown = (value: unknown): string => (value === null || value === undefined ? '-' : printableLine(String(value)));

/** Colours the text on a terminal, and returns it unchanged elsewhere. */
const onTerminal =
  (format: Parameters<typeof styleText>[0]) =>
  (text: string): string =>
    process.stdout.isTTY ? styleText(format, text) : text;

export const green = onTerminal('green');
export const red = onTerminal('red');
export const bold = onTerminal('bold');
export const dim = onTerminal('dim');

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
 * Shows on standard error how far a long command is: a bar on a terminal, else a line for every 10 %. With --json it shows
 * nothing. `work` gets a function that it calls with what is done and the total.
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
    { format: `${title} {bar} {percentage}% | {value}/{total}`, hideCursor: true, stream: process.stderr },
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
