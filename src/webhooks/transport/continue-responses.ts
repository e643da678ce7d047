import type { Socket } from 'node:net';

const STATUS_LINE_START = 'HTTP/1.1 100'.length;
const INFORMATIONAL = /^HTTP\/1\.1 1\d\d$/;
const BLANK_LINE = '\r\n\r\n';

/**
 * Lets undici accept a "100 Continue" that was not requested. A client must ignore it (RFC 9110 §15.2), but undici closes
 * the connection. So undici reads 102 in its place, which it reports as it does any other informational response.
 */
export class ContinueResponses {
  private statusLine = '';
  private matched = 0;
  private isFinalResponse = true;

  /** Called before each request on the connection. */
  expectResponse(): void {
    this.isFinalResponse = false;
    this.nextHead();
  }

  /** From now on undici reads the changed bytes. */
  replaceOn(socket: Socket): void {
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number) => {
      const chunk = read(size);
      if (chunk !== null) this.replaceIn(chunk);
      return chunk;
    };
  }

  /** A head may come in several chunks, so this walks byte by byte, up to the status of the final response. */
  private replaceIn(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.isFinalResponse; at += 1) {
      if (this.statusLine.length < STATUS_LINE_START) this.readStatus(chunk, at);
      else this.readHeader(chunk[at]);
    }
  }

  private readStatus(chunk: Buffer, at: number): void {
    this.statusLine += String.fromCharCode(chunk.readUInt8(at));
    if (this.statusLine.length < STATUS_LINE_START) return;
    this.isFinalResponse = !INFORMATIONAL.test(this.statusLine);
    if (!this.isFinalResponse && this.statusLine.endsWith('100')) chunk.write('2', at);
  }

  private readHeader(byte: number | undefined): void {
    if (byte === BLANK_LINE.charCodeAt(this.matched)) this.matched += 1;
    else this.matched = byte === BLANK_LINE.charCodeAt(0) ? 1 : 0;
    if (this.matched === BLANK_LINE.length) this.nextHead();
  }

  private nextHead(): void {
    this.statusLine = '';
    this.matched = 0;
  }
}
