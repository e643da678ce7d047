import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Bytes from here on would favour the first letters (256 is no multiple of 62) and are thrown away. */
const UNBIASED_BELOW = 256 - (256 % ALPHABET.length);

/** `length` random characters of [A-Za-z0-9], 5.95 bits each; 43 of them carry 256 bits. */
export function randomAlphanumeric(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < UNBIASED_BELOW && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

export type Environment = 'sandbox' | 'production';

const LETTER: Record<Environment, string> = { sandbox: 's', production: 'p' };
/** Enough until the year 5188. */
const TIME_WIDTH = 9;
/** 71 random bits: not guessable. With them an id has 22 characters, which leaves an order key without padding. */
const RANDOM_WIDTH = 12;

/**
 * An id of 22 characters of [A-Za-z0-9]: a letter for the environment, the time, then randomness.
 * In one environment ids sort by the millisecond they were made in: the time has no capitals, so that a linguistic
 * collation of Postgres sorts them so, too.
 */
export function newId(environment: Environment, nowMs: number): string {
  return LETTER[environment] + nowMs.toString(36).padStart(TIME_WIDTH, '0') + randomAlphanumeric(RANDOM_WIDTH);
}

/** The form of {@link newId}'s ids. No database is asked for other text: Postgres refuses NUL, MySQL passes over spaces. */
export const ID = /^[A-Za-z0-9]{22}$/;

/** The order's public key: standard Base64 of `MovieOrder:<id>` (specification 2.3). */
export function orderKey(orderId: string): string {
  return Buffer.from(`MovieOrder:${orderId}`).toString('base64');
}

/** The id inside an order key, or null where the text is not a key that {@link orderKey} makes. */
export function orderIdOf(key: string): string | null {
  const id = /^MovieOrder:([A-Za-z0-9]{22})$/.exec(Buffer.from(key, 'base64').toString('latin1'))?.[1];
  return id !== undefined && orderKey(id) === key ? id : null;
}
