import { CommandError, faultText } from '../../packages/receiver/dist/tools.js';
import { isDatabaseDown, isReadOnly } from '../database/sql.js';
import { Problem } from '../http/problem.js';
import { StartUpError } from '../values/start-up-error.js';

/** The line shown on standard error. Only an error in Usher itself shows its stack. */
export function faultLine(error: unknown): string {
  if (error instanceof Problem) return error.detail;
  if (error instanceof StartUpError || error instanceof CommandError) return error.message;
  if (isReadOnly(error)) return `the database refuses to write: ${(error as Error).message}`;
  if (isDatabaseDown(error)) return `the database does not answer: ${(error as Error).message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** With `asJson` one JSON document on a line of its own, for programs. */
export function reportFault(error: unknown, asJson = false): void {
  process.stderr.write(faultText('usher', faultLine(error), asJson));
}
