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
