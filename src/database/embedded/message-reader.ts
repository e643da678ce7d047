import type { Readable } from 'node:stream';
import { ProtocolError } from './protocol-error.js';

/** PostgreSQL's own MAX_STARTUP_PACKET_LENGTH. */
const STARTUP_LIMIT = 10_000;
const MESSAGE_LIMIT = 64 * 1024 * 1024;

/** Cuts a byte stream into whole messages; reads no further than it is asked for, so that the sender feels it. */
export class MessageReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(stream: Readable) {
    this.#chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  /** A startup, SSL or cancel request; undefined at the end of the stream. */
  async startup(): Promise<Buffer | undefined> {
    const header = await this.#peek(4);
    if (!header) return undefined;
    const length = header.readInt32BE(0);
    if (length < 8 || length > STARTUP_LIMIT) throw new ProtocolError('08P01', 'invalid length of startup packet');
    return this.#take(length);
  }

  async message(): Promise<Buffer | undefined> {
    const header = await this.#peek(5);
    if (!header) return undefined;
    const length = header.readInt32BE(1);
    if (length < 4) throw new ProtocolError('08P01', 'invalid message length');
    if (length > MESSAGE_LIMIT) throw new ProtocolError('54000', `message exceeds ${MESSAGE_LIMIT} bytes`);
    return this.#take(1 + length);
  }

  async #peek(length: number): Promise<Buffer | undefined> {
    while (this.#length < length) {
      const chunk = await this.#nextChunk();
      if (!chunk) return undefined;
      this.#parts.push(chunk);
      this.#length += chunk.length;
    }
    const [first] = this.#parts;
    if (!first || first.length < length) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0];
  }

  async #take(length: number): Promise<Buffer | undefined> {
    const bytes = await this.#peek(length);
    if (!bytes) return undefined;
    this.#parts[0] = bytes.subarray(length);
    this.#length -= length;
    if (bytes.length === length) this.#parts.shift();
    return bytes.subarray(0, length);
  }

  async #nextChunk(): Promise<Buffer | undefined> {
    try {
      const { done, value } = await this.#chunks.next();
      return done ? undefined : value;
    } catch {
      return undefined; // a stream that broke has ended
    }
  }
}
