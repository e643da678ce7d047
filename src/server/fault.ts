import { isDatabaseDown, isReadOnly } from '../database/sql.js';
import { Problem } from '../http/problem.js';
import { StartUpError } from '../values/start-up-error.js';

/** The line shown on standard error. Only an error in Usher itself shows its stack. */
export function faultLine(error: unknown): string {
  if (error instanceof Problem) return error.detail;
  if (error instanceof StartUpError) return error.message;
  if (isReadOnly(error)) return `the database refuses to write: ${(error as Error).message}`;
  if (isDatabaseDown(error)) return `the database does not answer: ${(error as Error).message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Ignores EPIPE: if the reader has gone (`usher … | head -1`), the command still finishes its work. */
export function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

/** With `asJson` one JSON document on a line of its own, for programs. */
export function reportFault(error: unknown, asJson = false): void {
  process.stderr.write(faultText(faultLine(error), asJson));
}

export const faultText = (fault: string, asJson: boolean): string =>
  asJson ? `${JSON.stringify({ error: fault })}\n` : `usher: ${fault}\n`;
