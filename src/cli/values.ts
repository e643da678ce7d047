import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseDuration } from '../values/duration.js';

/** A date or a time that exists: Date.parse() would read 2026-02-30 as 2 March. */
const Time = z.union([z.iso.date(), z.iso.datetime({ offset: true, local: true })]);

/** Parses a time, or a duration before now, to milliseconds since 1970. */
export function pastTime(text: string): number {
  const ago = parseDuration(text);
  if (ago !== null) return Date.now() - ago;
  if (Time.safeParse(text).success) return Date.parse(text);
  throw new InvalidArgumentError('It must be a duration like 24h, or a time like 2026-01-01T00:00:00Z.');
}

export function positive(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 999999.');
  return Number(text);
}

/** As text for a request, which takes RFC 3339. */
export const momentOf = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();
