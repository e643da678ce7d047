import { base64, hmacHex, signNotification } from './signature.js';

/** What differs between the request and a genuine notification. */
export type DifferingStep = 'header' | 'timestamp' | 'nonce' | 'body' | 'secret' | 'order' | 'encoding';

/** What a request claims to be signed from. */
export interface Signed {
  timestamp: string;
  nonce: string;
  rawBody: Uint8Array;
  secret: string;
}

export interface Mistake {
  differs: DifferingStep;
  /** What to check, as a text for people. */
  hint: string;
}

/** A mistake, and the key and the message of whoever makes it, as far as these differ from the right ones. */
interface Candidate extends Mistake {
  key?: string | Buffer;
  message?: string | Buffer;
}

/**
 * Finds the mistake that explains a wrong signature: the signature is computed again with one common mistake at a time. Returns
 * null if none of them gives one of the received signatures. This only explains; it never makes a request valid.
 */
export function findMistake(signed: Signed, given: (string | undefined)[]): Mistake | null {
  const right = signed.timestamp + signed.nonce + base64(signed.rawBody);
  for (const candidates of [bodies, secrets, messages, nonces])
    for (const { key = signed.secret, message = right, ...mistake } of candidates(signed))
      if (given.includes(hmacHex(key, message))) return mistake;
  return otherTimestamp(signed, given);
}

/** A signature that is right, but written in another form than lower-case hex; else null. */
export function findEncoding({ secret, timestamp, nonce, rawBody }: Signed, given: string | undefined): Mistake | null {
  const hex = signNotification(secret, timestamp, nonce, rawBody);
  const bytes = Buffer.from(hex, 'hex');
  const forms: Record<string, string> = {
    'upper-case hex': hex.toUpperCase(),
    Base64: bytes.toString('base64'),
    'URL-safe Base64': bytes.toString('base64url'),
    'hex with a prefix': `sha256=${hex}`,
  };
  const form = Object.keys(forms).find((name) => forms[name] === given);
  if (form === undefined) return null;
  return {
    differs: 'encoding',
    hint: `the signature is right, but written as ${form}; write the 32 bytes of the HMAC in lower-case hex`,
  };
}

function bodies({ timestamp, nonce, rawBody }: Signed): Candidate[] {
  const text = Buffer.from(rawBody).toString();
  const changes: [change: string, body: Buffer | string][] = [
    ['the body was parsed and serialised again: the signature matches its compact JSON', compact(text) ?? text],
    ['white space was added to the body: without it the signature matches', text.trim()],
    ['white space was removed from the body: with a line end the signature matches', `${text}\n`],
    ['the line ends of the body were changed: with LF the signature matches', text.replaceAll('\r\n', '\n')],
    ['the bytes of the body were read as Latin-1 and written as UTF-8', Buffer.from(text, 'latin1')],
    ['a byte order mark was added to the body', text.replace(/^\uFEFF/, '')],
  ];
  return changes.map(([change, body]) => ({
    differs: 'body',
    hint: `${change}. Verify the received bytes, before any parser`,
    message: timestamp + nonce + base64(Buffer.from(body)),
  }));
}

function secrets({ secret }: Signed): Candidate[] {
  const keys: [hint: string, key: string | Buffer][] = [
    ['the secret has white space around it: without it the signature matches. Remove the white space', secret.trim()],
    ['the secret was decoded from hex before it was used; use its text', Buffer.from(secret, 'hex')],
    ['the secret was decoded from Base64 before it was used; use its text', Buffer.from(secret, 'base64')],
    ['the secret was encoded in Base64 before it was used; use its text', Buffer.from(secret).toString('base64')],
    ['the secret was encoded in hex before it was used; use its text', Buffer.from(secret).toString('hex')],
    ['the secret was used in lower case; upper and lower case matter', secret.toLowerCase()],
    ['the secret was used with a line end; remove it', `${secret}\n`],
    ['an empty secret was used; check that it is set', ''],
  ];
  return keys.map(([hint, key]) => ({ differs: 'secret', hint, key }));
}

const SEPARATORS = {
  '': '',
  '.': 'dots',
  '\n': 'newlines',
  ':': 'colons',
  ',': 'commas',
  '|': 'bars',
  '-': 'dashes',
  ' ': 'spaces',
};

const ORDERS = [
  'timestamp, nonce, body',
  'nonce, timestamp, body',
  'timestamp, body, nonce',
  'nonce, body, timestamp',
  'body, timestamp, nonce',
  'body, nonce, timestamp',
  'timestamp, body',
  'nonce, body',
  'timestamp, nonce',
  'body',
];
const RIGHT_ORDER =
  'sign X-Timestamp, X-Nonce-Str and the Base64 of the body, in this order, with nothing between them';

/** Every order of the parts, separator between them, and form of the body. */
function* messages({ timestamp, nonce, rawBody }: Signed): Generator<Candidate> {
  for (const [form, body] of Object.entries(bodyForms(Buffer.from(rawBody)))) {
    const parts: Record<string, string> = { timestamp, nonce, body };
    for (const order of ORDERS)
      for (const [separator, name] of Object.entries(SEPARATORS)) {
        const pieces = order.split(', ').map((part) => parts[part]);
        const message = Buffer.from(pieces.join(separator), 'latin1');
        if (order === ORDERS[0] && name === '')
          yield { differs: 'encoding', hint: `${form} was signed; ${RIGHT_FORM}`, message };
        else yield { differs: 'order', hint: orderHint(order, name, form), message };
      }
  }
}

/** By the words for what is wrong, as Latin-1 text, which has a character for each byte. */
function bodyForms(body: Buffer): Record<string, string> {
  const standard = base64(body);
  return {
    '': standard,
    'the body itself': body.toString('latin1'),
    'URL-safe Base64': body.toString('base64url'),
    'Base64 without padding': standard.replace(/=+$/, ''),
    'Base64 with line ends': standard.replace(/.{1,76}/g, '$&\n'),
    hex: body.toString('hex'),
  };
}
const RIGHT_FORM = 'use the standard Base64 of the body, with padding';

function orderHint(order: string, separators: string, form: string): string {
  const between = separators && ` with ${separators} between them`;
  const what = order === 'body' ? 'only the body was signed' : `the parts were signed as ${order}${between}`;
  return `${what}${form && `, with ${form}`}; ${RIGHT_ORDER}`;
}

const nonces = ({ timestamp, nonce, rawBody }: Signed): Candidate[] =>
  [nonce.toLowerCase(), nonce.toUpperCase(), nonce.slice(0, 31), ''].map((other) => ({
    differs: 'nonce',
    hint: `the signature matches another nonce than X-Nonce-Str: ${other || 'an empty one'}. Use the header unchanged`,
    message: timestamp + other + base64(rawBody),
  }));

const SEARCHED_SECONDS = 600;
/** With a large body fewer timestamps are tried, so that the search takes a few milliseconds. */
const MOST_SEARCHED_BYTES = 4 * 1_024 * 1_024;

/** The timestamp in other units, or changed by up to ten minutes. */
function otherTimestamp({ secret, timestamp, nonce, rawBody }: Signed, given: (string | undefined)[]): Mistake | null {
  const seconds = Number(timestamp.slice(0, 10));
  const rest = nonce + base64(rawBody);
  const range = Math.min(SEARCHED_SECONDS, Math.ceil(MOST_SEARCHED_BYTES / (2 * rest.length)));
  const near = Array.from({ length: 2 * range + 1 }, (_, index) => String(seconds - range + index));
  const units = [`${seconds}000`, new Date(seconds * 1_000).toISOString(), `${timestamp}.0`];
  const signedAt = [...units, ...near].find((text) => given.includes(hmacHex(secret, text + rest)));
  if (signedAt === undefined) return null;
  const hint = units.includes(signedAt)
    ? `the timestamp was signed as ${signedAt}; sign the value of X-Timestamp, which is in seconds`
    : `the signature was made for X-Timestamp ${signedAt}, but the header is ${timestamp}: it was changed after signing`;
  return { differs: 'timestamp', hint };
}

/** The text as Usher serialises it; null if it is not JSON. */
export function compact(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return null;
  }
}
