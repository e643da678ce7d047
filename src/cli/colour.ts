import { styleText } from 'node:util';

/** Colours on a terminal, plain text elsewhere. */
const onTerminal =
  (format: Parameters<typeof styleText>[0]) =>
  (text: string): string =>
    process.stdout.isTTY ? styleText(format, text) : text;

export const green = onTerminal('green');
export const red = onTerminal('red');
export const bold = onTerminal('bold');
export const dim = onTerminal('dim');
