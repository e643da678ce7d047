const MAX_SNIPPET_BYTES = 1024;
export const BODY_MAX_BYTES = 64 * 1024;

// Control, format (including bidirectional overrides), private-use and lone surrogate characters.
const UNPRINTABLE = /[^\P{C}\n\t]/gu;

/** Turns the beginning of an untrusted response body into a short printable text. */
export class ResponseSnippet {
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private bytes = 0;

  constructor(private readonly encoding: string) {}

  /** Returns true when enough of the body has been read. */
  add(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.headBytes < MAX_SNIPPET_BYTES) {
      const part = Buffer.from(chunk.subarray(0, MAX_SNIPPET_BYTES - this.headBytes));
      this.head.push(part);
      this.headBytes += part.length;
    }
    return this.bytes >= BODY_MAX_BYTES;
  }

  text(): string {
    if (this.bytes === 0) return '';
    return this.encoding === '' ? printable(Buffer.concat(this.head)) : this.encodedText();
  }

  /** Only the size of a compressed body is shown; it is never decompressed. */
  private encodedText(): string {
    const size = this.bytes >= BODY_MAX_BYTES ? `${BODY_MAX_BYTES} bytes or more` : `${this.bytes} bytes`;
    return `(${this.encoding}, ${size})`;
  }
}

/** The Content-Encoding as a printable word, or '' if the body is not encoded. */
export function contentEncoding(header: string | string[] | undefined): string {
  const name = String(header ?? '')
    .toLowerCase()
    .trim();
  if (name === '' || name === 'identity') return '';
  return /^[a-z][a-z0-9, -]{0,30}$/.test(name) ? name : 'encoded';
}

function printable(bytes: Buffer): string {
  // With `stream`, an incomplete last character is left out.
  const text = new TextDecoder().decode(bytes, { stream: true });
  const cleaned = text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, '\uFFFD');
  const { read } = new TextEncoder().encodeInto(cleaned, new Uint8Array(MAX_SNIPPET_BYTES));
  return cleaned.slice(0, read);
}
