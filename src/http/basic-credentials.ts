import { createHash, timingSafeEqual } from 'node:crypto';
import { formDecode } from './oauth-parameters.js';

export interface BasicCredentials {
  id: string;
  secret: string;
}

const HEADER = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * The readings of an `Authorization: Basic` header, likeliest first: the pair as it stands (RFC 7617: split at the first
 * colon), then form-decoded (RFC 6749 §2.3.1) where that differs. Empty where the header holds no usable pair.
 */
export function parseBasicHeader(header: string | undefined): BasicCredentials[] {
  const encoded = HEADER.exec(header ?? '')?.[1];
  const text = encoded && decodeBase64(encoded);
  if (!text || CONTROL_CHARACTER.test(text)) return [];
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return [];
  const raw = { id: text.slice(0, colon), secret: text.slice(colon + 1) };
  const decoded = formDecodePair(raw);
  return decoded && (decoded.id !== raw.id || decoded.secret !== raw.secret) ? [raw, decoded] : [raw];
}

/** Whether a Basic header carries exactly this user and password; in constant time. Nobody has the credentials `null`. */
export function hasCredentials(header: string | undefined, wanted: { user: string; password: string } | null): boolean {
  return (
    wanted !== null &&
    parseBasicHeader(header).some(({ id, secret }) => isSame(id, wanted.user) && isSame(secret, wanted.password))
  );
}

/** Compares digests: equal lengths, so nothing of the text shows in the time. */
function isSame(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

function decodeBase64(encoded: string): string | null {
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function formDecodePair({ id, secret }: BasicCredentials): BasicCredentials | null {
  try {
    const decoded = { id: formDecode(id), secret: formDecode(secret) };
    return CONTROL_CHARACTER.test(decoded.id + decoded.secret) ? null : decoded;
  } catch {
    return null;
  }
}
