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
  const body = parseOrThrow(() => JSON.parse(decodeUtf8(bytes)) as unknown, 'the body is not valid JSON');
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Parameters;
  throw new OAuthError('invalid_request', 'the body must be a JSON object');
}

/** Parses a form. RFC 6749 §3.2 forbids duplicate parameters. */
export function parseFormParameters(bytes: Uint8Array): Parameters {
  const pairs = parseOrThrow(() => formPairs(decodeUtf8(bytes)), 'the body is not a valid form');
  const parameters = new Map(pairs);
  if (parameters.size < pairs.length) throw new OAuthError('invalid_request', 'a parameter is given more than once');
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
  if (isForm && Object.values(body).some(Array.isArray))
    throw new OAuthError('invalid_request', 'a parameter is given more than once');
  return body as Parameters;
}
