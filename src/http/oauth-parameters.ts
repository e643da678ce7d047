import type { IncomingHttpHeaders } from 'node:http';
import type { HttpRequest } from './exchange.js';
import { OAuthError } from './oauth-error.js';

/** The body encodings of the OAuth routes: JSON (specification 4) and form (RFC 6749). */
export type BodyEncoding = 'json' | 'form';

const ENCODINGS = new Map<string, BodyEncoding>([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
]);

/** The encoding in a Content-Type header. Null if it is not supported or the charset is not UTF-8. */
export function bodyEncoding(contentType: string | undefined): BodyEncoding | null {
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  return parameters.every(isSupported) ? (ENCODINGS.get(type) ?? null) : null;
}

function isSupported(parameter: string): boolean {
  const [name, value] = parameter.split('=');
  return name !== 'charset' || /^("?)utf-?8\1$/.test(value ?? '');
}

/** The parameters of an OAuth request. All names, also `__proto__`, are own properties. */
export type Parameters = Record<string, unknown>;

/** Parses a JSON object in UTF-8. A leading byte order mark is ignored (RFC 8259 §8.1). */
export function parseJsonParameters(bytes: Uint8Array): Parameters {
  const [text, body] = parseOrThrow(() => textAndValue(bytes), 'the body is not valid JSON');
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new OAuthError('invalid_request', 'the body must be a JSON object');
  if (repeatsMember(text, body)) throw repeatedParameter();
  return body as Parameters;
}

function textAndValue(bytes: Uint8Array): [text: string, value: unknown] {
  const text = decodeUtf8(bytes);
  return [text, JSON.parse(text)];
}

const JSON_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * Whether an object in valid JSON has a member twice. Of those JSON.parse keeps only the last one, other parsers the
 * first (RFC 8259 §4). Every member has one colon outside of strings, so it compares their number with the value's.
 */
export function repeatsMember(text: string, value: unknown): boolean {
  const written = text.replace(JSON_STRING, '').split(':').length - 1;
  let kept = 0;
  for (const rest = [value]; rest.length > 0;) {
    const next = rest.pop();
    if (typeof next !== 'object' || next === null) continue;
    const inner = Object.values(next) as unknown[];
    if (!Array.isArray(next)) kept += inner.length;
    for (const one of inner) rest.push(one);
  }
  return written > kept;
}

/** Parses a form. RFC 6749 §3.2 forbids duplicate parameters. */
export function parseFormParameters(bytes: Uint8Array): Parameters {
  const pairs = parseOrThrow(() => formPairs(decodeUtf8(bytes)), 'the body is not a valid form');
  const parameters = new Map(pairs);
  if (parameters.size < pairs.length) throw repeatedParameter();
  return Object.fromEntries(parameters);
}

function formPairs(text: string): [string, string][] {
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const separator = pair.indexOf('=');
      if (separator < 0) return [formDecode(pair), ''];
      return [formDecode(pair.slice(0, separator)), formDecode(pair.slice(separator + 1))];
    });
}

/** Decodes application/x-www-form-urlencoded text. Throws URIError if it is malformed. */
export const formDecode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '));

const decodeUtf8 = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(bytes);

const repeatedParameter = (): OAuthError => new OAuthError('invalid_request', 'a parameter is given more than once');

function parseOrThrow<T>(parse: () => T, message: string): T {
  try {
    return parse();
  } catch {
    throw new OAuthError('invalid_request', message);
  }
}

/** Throws 415 unless the body of an OAuth request is JSON or a form, in UTF-8 and not compressed. */
export function checkMediaType(headers: IncomingHttpHeaders): void {
  const coding = headers['content-encoding'] ?? 'identity';
  if (bodyEncoding(headers['content-type']) !== null && coding.toLowerCase() === 'identity') return;
  const wanted = 'send Content-Type: application/json or application/x-www-form-urlencoded, in UTF-8, not compressed';
  throw new OAuthError('invalid_request', wanted, 415);
}

/** The parameters in a body that the application's own parser read. Such parsers make a list of a repeated parameter. */
export function parametersOf({ body, headers }: HttpRequest): Parameters {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new OAuthError('invalid_request', 'the body must be a JSON object');
  const isForm = bodyEncoding(headers['content-type']) === 'form';
  if (isForm && Object.values(body).some(Array.isArray)) throw repeatedParameter();
  return body as Parameters;
}
