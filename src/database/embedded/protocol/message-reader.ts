import type { Readable } from 'node:stream';
import { ProtocolError } from './messages.js';

/** PostgreSQL's own MAX_STARTUP_PACKET_LENGTH. */
const MAX_STARTUP_BYTES = 10_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Splits a byte stream into whole messages. It reads only on demand, which applies backpressure to the client. */
export class MessageReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(stream: Readable) {
    this.#chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  /** A startup, encryption or cancel request; undefined at the end of the stream. */
  async nextStartupPacket(): Promise<Buffer | undefined> {
    const header = await this.#peek(4);
    if (!header) return undefined;
    const length = header.readInt32BE(0);
    if (length < 8 || length > MAX_STARTUP_BYTES) throw new ProtocolError('08P01', 'invalid length of startup packet');
    return this.#take(length);
  }

  /** Undefined at the end of the stream. */
  async nextMessage(): Promise<Buffer | undefined> {
    const header = await this.#peek(5);
    if (!header) return undefined;
    const length = header.readInt32BE(1);
    if (length < 4) throw new ProtocolError('08P01', 'invalid message length');
    if (length > MAX_MESSAGE_BYTES) throw new ProtocolError('54000', `message exceeds ${MAX_MESSAGE_BYTES} bytes`);
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
      return undefined; // A broken stream counts as ended.
    }
  }
}
