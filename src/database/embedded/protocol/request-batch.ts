import type { MessageReader } from './message-reader.js';
import { message, ProtocolError, stringAt, strings, typeOf } from './messages.js';
import type { PreparedStatements } from './prepared-statements.js';

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
