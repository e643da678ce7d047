const SNIPPET_MAX_BYTES = 1024;
export const BODY_MAX_BYTES = 64 * 1024;

// Control, format (bidirectional overrides among them), private-use and lone surrogate characters.
const UNPRINTABLE = /[^\P{C}\n\t]/gu;

/** Reads the beginning of a response body, whose every byte is a stranger's, into a short text. */
export class ResponseSnippet {
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private bytes = 0;

  constructor(private readonly encoding: string) {}

  /** True once enough of the body has been read. */
  add(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.headBytes < SNIPPET_MAX_BYTES) {
      const part = Buffer.from(chunk.subarray(0, SNIPPET_MAX_BYTES - this.headBytes));
      this.head.push(part);
      this.headBytes += part.length;
    }
    return this.bytes >= BODY_MAX_BYTES;
  }

  text(): string {
    if (this.bytes === 0) return '';
    return this.encoding === '' ? printable(Buffer.concat(this.head)) : this.encodedText();
  }

  /** A compressed body is counted, never unpacked. */
  private encodedText(): string {
    const size = this.bytes >= BODY_MAX_BYTES ? `${BODY_MAX_BYTES} bytes or more` : `${this.bytes} bytes`;
    return `(${this.encoding}, ${size})`;
  }
}

/** The Content-Encoding as a word that can be shown; '' for a body sent as it is. */
export function contentEncoding(header: string | string[] | undefined): string {
  const name = String(header ?? '')
    .toLowerCase()
    .trim();
  if (name === '' || name === 'identity') return '';
  return /^[a-z][a-z0-9, -]{0,30}$/.test(name) ? name : 'encoded';
}

function printable(bytes: Buffer): string {
  // `stream` leaves out a last character that was cut in two.
  const text = new TextDecoder().decode(bytes, { stream: true });
  const cleaned = text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, '\uFFFD');
  const { read } = new TextEncoder().encodeInto(cleaned, new Uint8Array(SNIPPET_MAX_BYTES));
  return cleaned.slice(0, read);
}
