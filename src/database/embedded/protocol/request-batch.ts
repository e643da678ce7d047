import type { Readable } from 'node:stream';
import { message, ProtocolError, stringAt, strings, typeOf } from './messages.js';

/** What a client sends before it waits for a reply: all messages up to a Query, Sync, FunctionCall or Flush. */
export interface RequestBatch {
  readonly bytes: Buffer;
  readonly sql: readonly string[];
  /** Whether a ReadyForQuery answers it. */
  readonly complete: boolean;
}

/** A longer batch is passed on in parts, as if the client had sent a Flush. */
const MAX_BATCH_BYTES = 1024 * 1024;

/**
 * PGlite ends its session when it waits for COPY data that does not arrive. A CopyFail after every statement prevents
 * this: during a COPY it fails that COPY alone, otherwise Postgres ignores it.
 */
const COPY_FAIL = message('f', strings('COPY FROM STDIN is not supported by the embedded database; use INSERT'));

/** Undefined once the client has sent Terminate or its stream has ended. */
export async function readBatch(
  reader: MessageReader,
  prepared: PreparedStatements,
): Promise<RequestBatch | undefined> {
  const parts: Buffer[] = [];
  const sql: string[] = [];
  for (let size = 0; size < MAX_BATCH_BYTES;) {
    const received = await reader.nextMessage();
    if (!received || typeOf(received) === 'X') return undefined;
    const type = checkedType(received);
    parts.push(...toBackend(type, prepared.rename(received)));
    size += received.length;
    if (type === 'Q') sql.push(stringAt(received, 5).text);
    if (type === 'P') sql.push(stringAt(received, stringAt(received, 5).next).text);
    if ('QSFH'.includes(type)) return { bytes: Buffer.concat(parts), sql, complete: type !== 'H' };
  }
  return { bytes: Buffer.concat(parts), sql, complete: false };
}

/** Only known types pass: an unknown message type makes PGlite loop forever. */
function checkedType(received: Buffer): string {
  const type = typeOf(received);
  if ('QPBDECSFHdcf'.includes(type)) return type;
  throw new ProtocolError('08P01', `invalid frontend message type ${received[0]}`);
}

/** Drops the client's COPY messages and adds ours. */
function toBackend(type: string, renamed: Buffer): Buffer[] {
  if ('dcf'.includes(type)) return [];
  return type === 'Q' || type === 'E' ? [renamed, COPY_FAIL] : [renamed];
}

/** PostgreSQL's own MAX_STARTUP_PACKET_LENGTH. */
const MAX_STARTUP_BYTES = 10_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Splits a byte stream into whole messages. It reads only on demand, which applies backpressure to the client. */
export class MessageReader {
  readonly #chunks: AsyncIterator<Buffer, undefined>;
  #unread: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
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

  /** All unread bytes, at least `length`; undefined if the stream ends before. */
  async #peek(length: number): Promise<Buffer | undefined> {
    const parts = [this.#unread];
    for (let size = this.#unread.length; size < length;) {
      // A broken stream counts as ended.
      const { value } = await this.#chunks.next().catch(() => ({ value: undefined }));
      if (!value) return undefined;
      parts.push(value);
      size += value.length;
    }
    if (parts.length > 1) this.#unread = Buffer.concat(parts);
    return this.#unread;
  }

  async #take(length: number): Promise<Buffer | undefined> {
    const bytes = await this.#peek(length);
    if (bytes) this.#unread = bytes.subarray(length);
    return bytes?.subarray(0, length);
  }
}

/** Renames a connection's named statements, because all connections share the names of one session. */
export class PreparedStatements {
  readonly #names = new Map<string, string>();
  #count = 0;

  constructor(private readonly prefix: string) {}

  /** The message with its statement name replaced; the original if it names no statement. */
  rename(original: Buffer): Buffer {
    const type = typeOf(original);
    if (type === 'P') return this.#replace(original, 5);
    if (type === 'B') return this.#replace(original, stringAt(original, 5).next);
    if ('DC'.includes(type) && original[5] === 0x53) return this.#replace(original, 6);
    return original;
  }

  /** Returns the SQL that deallocates all of them. */
  clear(): string[] {
    const names = [...this.#names.values()];
    this.#names.clear();
    return names.map((name) => `DEALLOCATE "${name}"`);
  }

  #replace(original: Buffer, start: number): Buffer {
    const { text, next } = stringAt(original, start);
    if (text === '') return original;
    const type = typeOf(original);
    const name = this.#names.get(text) ?? `${this.prefix}_${++this.#count}`;
    if (type === 'P') this.#names.set(text, name);
    return message(type, Buffer.concat([original.subarray(5, start), strings(name), original.subarray(next)]));
  }
}
