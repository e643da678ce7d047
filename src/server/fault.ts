import { ClientError } from '../clients/client-error.js';
import { isDatabaseDown } from '../database/sql.js';
import { Problem } from '../http/problem.js';
import { NotifyUrlError } from '../values/notify-url.js';
import { StartUpError } from '../values/start-up-error.js';

const EXPECTED = [StartUpError, ClientError, NotifyUrlError];

/** The line a person gets on standard error. Only a fault of ours shows its stack. */
export function faultLine(error: unknown): string {
  if (error instanceof Problem) return error.detail;
  if (EXPECTED.some((kind) => error instanceof kind)) return (error as Error).message;
  if (isDatabaseDown(error)) return `the database does not answer: ${(error as Error).message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** A reader that has gone (`usher … | head -1`) ends nothing: what is under way is finished in silence. */
export function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

export function reportFault(error: unknown): void {
  process.stderr.write(`usher: ${faultLine(error)}\n`);
}
