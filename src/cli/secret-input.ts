import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { StartUpError } from '../values/start-up-error.js';

/** Reads a secret from standard input, without a final newline: a whole pipe, or one hidden line at a terminal. */
export async function readSecret(name = 'Client secret'): Promise<string> {
  return process.stdin.isTTY ? typedSecret(name) : decoded(Buffer.concat(await process.stdin.toArray()));
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    throw new StartUpError('the secret on standard input is not UTF-8; send it as UTF-8');
  }
}

async function typedSecret(name: string): Promise<string> {
  process.stderr.write(`${name} (hidden): `);
  const noOutput = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: noOutput, terminal: true, historySize: 0 });
  try {
    const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close').then(() => [''])])) as [string];
    return line;
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}
