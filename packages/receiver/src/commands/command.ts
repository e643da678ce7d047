import { once } from 'node:events';
import { createInterface, type ReadLineOptions } from 'node:readline';
import { Writable } from 'node:stream';
import type { Output } from './output.js';

/** The command line of Usher has these commands too. */
export interface Command {
  summary: string;
  help: string;
  /** What each option must be, besides those that all commands have. */
  options: Record<string, Kind>;
  required?: string[];
  /** The option whose value is given without its name. */
  argument?: string;
  /** Returns null if it has printed everything itself. */
  run(options: object, context: Context): Promise<Output | null>;
}

/** A kind of value. `parse` returns null for a text that is not `wanted`. */
export interface Kind {
  wanted: string;
  parse(text: string): unknown;
}

export interface Context {
  /** The client secret. */
  secret: string;
  asJson: boolean;
  variables: Record<string, string | undefined>;
  /** The address of the service that served this package; else null. */
  service: string | null;
}

/** What the user of a command did wrong, or must correct. The message says what to do. */
export class CommandError extends Error {}

export const HTTP_URL: Kind = {
  wanted: 'a URL like http://127.0.0.1:8080/notify',
  parse(text) {
    try {
      const url = new URL(text);
      return /^https?:$/.test(url.protocol) ? url : null;
    } catch {
      return null;
    }
  },
};

export const whole = (min: number, max: number): Kind => ({
  wanted: `a whole number from ${min} to ${max}`,
  parse: (text) => (/^\d{1,6}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null),
});

export const TEXT: Kind = { wanted: 'a text', parse: (text) => text };

/** Reads a secret from standard input, without a final newline: a whole pipe, or one hidden line at a terminal. */
export async function readSecret(name: string): Promise<string> {
  if (process.stdin.isTTY) {
    const output = new Writable({ write: (_chunk, _encoding, done) => done() });
    return readLine(`${name} (hidden): `, { output, terminal: true, historySize: 0 });
  }
  const bytes = Buffer.concat(await process.stdin.toArray());
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    throw new CommandError('the secret on standard input is not UTF-8; send it as UTF-8');
  }
}

/** Reads one line of standard input, from a terminal or a pipe. It is empty if there is none. */
export async function readLine(question: string, options: Omit<ReadLineOptions, 'input'> = {}): Promise<string> {
  process.stderr.write(question);
  const lines = createInterface({ input: process.stdin, ...options });
  try {
    const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close').then(() => [''])])) as [string];
    return line;
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}
