import { CommandError, faultText } from '../../packages/receiver/dist/tools.js';
import { isDatabaseDown, isReadOnly } from '../database/errors.js';
import { Problem } from '../http/problem.js';
import { StartUpError } from '../values/start-up-error.js';

/** The line shown on standard error. Only an error in Usher itself shows its stack. */
export function faultLine(error: unknown): string {
  // The detail of a 5xx hides the cause from clients.
  if (error instanceof Problem) return error.getStatus() >= 500 ? error.message : error.detail;
  if (error instanceof StartUpError || error instanceof CommandError) return error.message;
  if (isReadOnly(error)) return `the database refuses to write: ${(error as Error).message}`;
  if (isOwnerGone(error)) return 'another process that ran the embedded database has ended; run the command again';
  if (isDatabaseDown(error)) return `the database does not answer: ${(error as Error).message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Whether the process that ran the embedded database closes it, or has removed its socket. */
function isOwnerGone(error: unknown): boolean {
  const {
    message = '',
    syscall,
    address = '',
  } = (error ?? {}) as Partial<Error & { syscall: string; address: string }>;
  const isSocketGone = syscall === 'connect' && address.endsWith('/.s.PGSQL.5432');
  return isSocketGone || message.endsWith('the embedded database is closing');
}

/** With `asJson` one JSON document on a line of its own, for programs. */
export function reportFault(error: unknown, asJson = false): void {
  process.stderr.write(faultText('usher', faultLine(error), asJson));
}
