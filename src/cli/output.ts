import { styleText } from 'node:util';
import { exactJson } from '../http/exchange.js';

/**
 * Replaces each control or format character except a newline by its \\u escape: text of others must not control the terminal.
 * A JSON document keeps its meaning.
 */
export const printable = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** Text of others within a line: a newline is replaced too. */
export const printableLine = (text: string): string => printable(text).replaceAll('\n', '\\n');

/** Prints one JSON document, or `text` for people, on standard output. */
export function print(asJson: boolean | undefined, value: unknown, text: string): void {
  process.stdout.write(asJson ? `${printable(exactJson(value, 2))}\n` : `${text}\n`);
}

/** Aligned `name  value` lines. Null is shown as a dash. */
export function fields(record: Record<string, unknown>): string {
  const entries = Object.entries(record).map(([name, value]) => [printableLine(name), value] as const);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}`).join('\n');
}

/** Aligned rows with headings, or `empty` if there are no rows. */
export function table(rows: Record<string, unknown>[], empty: string): string {
  const [first] = rows;
  if (!first) return empty;
  const names = Object.keys(first);
  const cells = [names, ...rows.map((row) => names.map((name) => shown(row[name])))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => columnsOf(row[column] ?? ''))));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - columnsOf(cell))))
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
