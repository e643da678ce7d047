import { styleText } from 'node:util';

/**
 * Replaces each control or format character except a newline by its \\u escape: text from elsewhere must not control
 * the terminal. A JSON document keeps its meaning.
 */
export const printable = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    // Without the flag u, which takes the two halves of a surrogate pair as one.
    character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );

/** For text within a line: a newline is replaced too. */
export const printableLine = (text: string): string => printable(text).replaceAll('\n', '\\n');

/**
 * What a command prints: one JSON document with --json, else the text. Without a text, the fields of the document are
 * printed.
 */
export interface Output {
  json: object;
  text?: string;
  /** A line that follows on standard error. */
  note?: string | null;
}

/** Aligned `name  value` lines. Null is shown as a dash. */
export function fields(record: object): string {
  const entries = Object.entries(record).map(([name, value]) => [printableLine(name), shown(value)] as const);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

export const shown = (value: unknown): string =>
  value === null || value === undefined ? '-' : printableLine(String(value));

const onTerminal =
  (format: Parameters<typeof styleText>[0]) =>
  (text: string): string =>
    process.stdout.isTTY ? styleText(format, text) : text;

export const green = onTerminal('green');
export const red = onTerminal('red');
export const bold = onTerminal('bold');
export const dim = onTerminal('dim');

/**
 * Ignores errors of standard error, and EPIPE: if the reader has gone (`usher … | head -1`), the command still finishes its
 * work. If its result cannot be written, for example to a full disk, the process ends with one line.
 */
export function ignoreClosedOutput(program: string): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    process.stderr.write(`${program}: the output cannot be written: ${error.message}\n`);
    process.exit(1);
  });
}

/** With `asJson` one JSON document on a line of its own, for programs. */
export const faultText = (program: string, fault: string, asJson: boolean): string =>
  asJson ? `${JSON.stringify({ error: fault })}\n` : `${program}: ${fault}\n`;
