import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Larger bytes are discarded: 256 is not a multiple of 62, so they would favour the first characters. */
const UNBIASED_BELOW = 256 - (256 % ALPHABET.length);

/** Random bytes are taken in large pieces: each call costs more than thousands of bytes. No byte is used twice. */
const PIECE_BYTES = 4_096;
let piece = Buffer.alloc(0);
let used = 0;

/** `length` random characters of [A-Za-z0-9], 5.95 bits each; 43 of them carry 256 bits. */
export function randomAlphanumeric(length: number): string {
  let text = '';
  while (text.length < length) {
    const byte = nextByte();
    if (byte < UNBIASED_BELOW) text += ALPHABET[byte % ALPHABET.length];
  }
  return text;
}

function nextByte(): number {
  if (used === piece.length) [piece, used] = [randomBytes(PIECE_BYTES), 0];
  const byte = piece[used] as number;
  // Overwritten, so that what made a token does not stay in memory.
  piece[used] = 0;
  used += 1;
  return byte;
}

/** Tokens and ids of one environment are invalid in the other. */
export type Environment = 'sandbox' | 'production';

const LETTER: Record<Environment, string> = { sandbox: 's', production: 'p' };
/** Nine base-36 digits are enough until the year 5188. */
const TIME_WIDTH = 9;
/** 71 random bits, which cannot be guessed. An id then has 22 characters, so an order key needs no Base64 padding. */
const RANDOM_WIDTH = 12;

/**
 * An id of 22 characters of [A-Za-z0-9]: a letter for the environment, the time, then random characters. Ids of one
 * environment sort by creation time. The time has no capitals, so linguistic collations of Postgres sort it the same way.
 */
export function newId(environment: Environment, nowMs: number): string {
  return LETTER[environment] + timeText(nowMs) + randomAlphanumeric(RANDOM_WIDTH);
}

let [writtenMs, written] = [NaN, ''];

/** The text is kept for the next id, because `toString(36)` takes longer than the random characters. */
function timeText(ms: number): string {
  if (ms !== writtenMs) [writtenMs, written] = [ms, ms.toString(36).padStart(TIME_WIDTH, '0')];
  return written;
}

export const isOf = (environment: Environment, id: string): boolean => id.startsWith(LETTER[environment]);

/** When an id of {@link newId} was made, in milliseconds since 1970. */
export const timeOfId = (id: string): number => Number.parseInt(id.slice(1, 1 + TIME_WIDTH), 36);

/** Not greater than any id that is made at this time or later, and greater than every earlier one. */
export const firstIdAt = (environment: Environment, ms: number | null): string | null =>
  ms === null ? null : LETTER[environment] + timeText(Math.max(0, Math.floor(ms)));

/** The form of {@link newId}'s ids. Check it before a query: Postgres rejects NUL and MySQL ignores trailing spaces. */
export const ID = /^[A-Za-z0-9]{22}$/;

/** Refuses undefined and null: a `DataSource` can leave them out of a `where`, which then also finds the rows of others. */
export function requiredId(id: string, name = 'the id'): string {
  if (typeof id !== 'string') throw new TypeError(`${name} is ${String(id)}; pass a string`);
  return id;
}

/** Whether to disable: undefined would otherwise enable. */
export function requiredFlag(disabled: boolean): boolean {
  if (typeof disabled !== 'boolean') throw new TypeError(`disabled is ${String(disabled)}; pass true or false`);
  return disabled;
}

/** The order's public key: standard Base64 of `MovieOrder:<id>` (specification 2.3). */
export function orderKey(orderId: string): string {
  return Buffer.from(`MovieOrder:${orderId}`).toString('base64');
}

/** The id in an order key, or null if the text is not a key made by {@link orderKey}. */
export function orderIdOf(key: string): string | null {
  const id = /^MovieOrder:([A-Za-z0-9]{22})$/.exec(Buffer.from(String(key), 'base64').toString('latin1'))?.[1];
  return id !== undefined && orderKey(id) === key ? id : null;
}
