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
