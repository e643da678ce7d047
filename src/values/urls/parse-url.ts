/**
 * Parses an absolute URL. Null if the text is none.
 *
 * `URL.canParse` is not used. In Node 20, once V8 has optimised its caller, it answers false for texts with letters such as ü.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
