import { OAuthError } from './oauth-error.js';

/** The body encodings of the OAuth routes: JSON (specification 4) and forms (RFC 6749). */
export type BodyEncoding = 'json' | 'form';

const ENCODINGS = new Map<string, BodyEncoding>([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
]);

/** What a Content-Type header promises, or null where it is neither, or not in UTF-8. */
export function bodyEncoding(contentType: string | undefined): BodyEncoding | null {
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  return parameters.every(isHarmless) ? (ENCODINGS.get(type) ?? null) : null;
}

function isHarmless(parameter: string): boolean {
  const [name, value] = parameter.split('=');
  return name !== 'charset' || /^("?)utf-?8\1$/.test(value ?? '');
}

/** The parameters of an OAuth request. Made of own properties only, whatever their names. */
export type Parameters = Record<string, unknown>;

/** A JSON object in UTF-8 (a leading byte order mark is passed over, RFC 8259 §8.1). */
export function parseJsonParameters(bytes: Uint8Array): Parameters {
  const body = parsed(() => JSON.parse(decodeUtf8(bytes)) as unknown, 'the body is not valid JSON');
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Parameters;
  throw new OAuthError('invalid_request', 'the body must be a JSON object');
}

/** A form; RFC 6749 §3.2 forbids a parameter to be given twice. */
export function parseFormParameters(bytes: Uint8Array): Parameters {
  const pairs = parsed(() => formPairs(decodeUtf8(bytes)), 'the body is not a valid form');
  const parameters = new Map(pairs);
  if (parameters.size < pairs.length) throw new OAuthError('invalid_request', 'a parameter is given more than once');
  return Object.fromEntries(parameters);
}

function formPairs(text: string): [string, string][] {
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [formDecode(pair), ''] : [formDecode(pair.slice(0, at)), formDecode(pair.slice(at + 1))];
    });
}

/** Text of a form (application/x-www-form-urlencoded), decoded; throws URIError where it is malformed. */
export const formDecode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '));

const decodeUtf8 = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(bytes);

function parsed<T>(parse: () => T, fault: string): T {
  try {
    return parse();
  } catch {
    throw new OAuthError('invalid_request', fault);
  }
}
