import { once } from 'node:events';
import { createInterface, type ReadLineOptions } from 'node:readline';
import { Writable } from 'node:stream';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { clientSecret } from '../server/settings/settings.js';
import { parseDuration } from '../values/duration.js';
import { StartUpError } from '../values/start-up-error.js';

/** A date or a time that exists: Date.parse() would read 2026-02-30 as 2 March. */
const Time = z.union([z.iso.date(), z.iso.datetime({ offset: true, local: true })]);

/** Makes the parser of an option. `parse` returns null for a text that is not what the option wants. */
export const parser =
  <T>(wanted: string, parse: (text: string) => T | null) =>
  (text: string): T => {
    const value = parse(text);
    if (value === null) throw new InvalidArgumentError(`It must be ${wanted}.`);
    return value;
  };

/** Parses a time, or a duration before now, to RFC 3339 text in UTC. */
export const pastTime = parser('a duration like 24h, or a time like 2026-01-01T00:00:00Z', (text) => {
  const ago = parseDuration(text);
  if (ago === null && !Time.safeParse(text).success) return null;
  return new Date(ago === null ? text : Math.max(0, Date.now() - ago)).toISOString();
});

/** Parses a whole number within these bounds. */
export const whole = (min: number, max: number, form = /^\d{1,6}$/) =>
  parser(`a whole number from ${min} to ${max}`, (text) =>
    form.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null,
  );

/** As {@link whole}, but without leading zeros. */
export const positive = whole(1, 999_999, /^[1-9]\d{0,5}$/);

/** The option of the commands that need a client secret. It has no value: see {@link clientSecretFrom}. */
export const SECRET_OPTION = [
  '--secret-stdin',
  'read the client secret from standard input, not from the variable CLIENT_SECRET',
] as const;

/**
 * The client secret, from standard input or from the variable CLIENT_SECRET. It is no option: the arguments of a process are
 * visible to every user of the machine.
 */
export async function clientSecretFrom({ secretStdin }: { secretStdin?: boolean }): Promise<string> {
  const secret = secretStdin ? await readSecret('Client secret') : clientSecret();
  if (secret !== '') return secret;
  throw new StartUpError('the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin');
}

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
    throw new StartUpError('the secret on standard input is not UTF-8; send it as UTF-8');
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
