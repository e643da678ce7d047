import { isUtf8 } from 'node:buffer';
import { hash, timingSafeEqual } from 'node:crypto';
import { formDecode } from './oauth-route.js';

export interface BasicCredentials {
  id: string;
  secret: string;
}

const HEADER = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const CONTROL_CHARACTER = /\p{Cc}/u;
const FORM_ENCODED = /[%+]/;

/**
 * The possible credentials in an `Authorization: Basic` header: first as they are (RFC 7617, split at the first colon),
 * then form-decoded if that differs (RFC 6749 §2.3.1). Empty if the header is invalid.
 */
export function parseBasicHeader(header: string | undefined): BasicCredentials[] {
  const encoded = HEADER.exec(header ?? '')?.[1];
  const text = encoded && decodeBase64(encoded);
  if (!text || CONTROL_CHARACTER.test(text)) return [];
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return [];
  const raw = { id: text.slice(0, colon), secret: text.slice(colon + 1) };
  const decoded = FORM_ENCODED.test(text) ? formDecodePair(raw) : null;
  return decoded && (decoded.id !== raw.id || decoded.secret !== raw.secret) ? [raw, decoded] : [raw];
}

/** Compares credentials with a user and password in constant time. Always false if `expected` is null. */
export function hasCredentials(
  credentials: BasicCredentials[],
  expected: { user: string; password: string } | null,
): boolean {
  const texts = credentials.map(({ id, secret }) => `${id}:${secret}`);
  return expected !== null && texts.some((text) => isSameText(text, `${expected.user}:${expected.password}`));
}

/** Compares digests in constant time. They have equal lengths, so the timing reveals nothing about the texts. */
export function isSameText(left: string, right: string): boolean {
  return timingSafeEqual(hash('sha256', left, 'buffer'), hash('sha256', right, 'buffer'));
}

function decodeBase64(encoded: string): string | null {
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded && isUtf8(bytes) ? bytes.toString() : null;
}

function formDecodePair({ id, secret }: BasicCredentials): BasicCredentials | null {
  try {
    const decoded = { id: formDecode(id), secret: formDecode(secret) };
    return CONTROL_CHARACTER.test(decoded.id + decoded.secret) ? null : decoded;
  } catch {
    return null;
  }
}

const HOW =
  'send Authorization: Basic <BASE64(client_id:client_secret)> (client_secret_basic), with curl: -u client_id:client_secret';

/** Says how to send credentials if there are none. It depends on the request alone, so it reveals nothing. */
export function refusalOf(header: string | undefined, credentials: BasicCredentials[]): string {
  if (header === undefined)
    return `the client credentials are missing in the Authorization header, and those in a body are not read; ${HOW}`;
  if (/^bearer\b/i.test(header)) return `this path takes the client id and secret, not a token; ${HOW}`;
  if (credentials.length === 0) return `the Authorization header has no client id and secret; ${HOW}`;
  return INVALID_CREDENTIALS;
}

export const INVALID_CREDENTIALS = 'the client id or the client secret is invalid';
