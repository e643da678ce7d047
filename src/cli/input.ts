import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseDuration } from '../values/duration.js';

export { readLine, readSecret } from '../../packages/receiver/dist/tools.js';

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

export const positive = parser('a whole number from 1 to 999999', (text) =>
  /^[1-9]\d{0,5}$/.test(text) ? Number(text) : null,
);
