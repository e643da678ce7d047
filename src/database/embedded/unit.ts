import type { MessageReader } from './message-reader.js';
import type { PreparedStatements } from './prepared-statements.js';
import { ProtocolError } from './protocol-error.js';
import { message, stringAt, strings, typeOf } from './wire.js';

/** What a client sends before it waits for an answer: up to a Query, a Sync, a function call or a Flush. */
export interface Unit {
  readonly bytes: Buffer;
  readonly sql: readonly string[];
  /** Whether a ReadyForQuery answers it. */
  readonly complete: boolean;
}

/** More than this is passed on as if the client had sent a Flush. */
const UNIT_LIMIT = 1024 * 1024;

/**
 * PGlite ends its session when it waits for COPY data that does not come. Outside a COPY this message is ignored,
 * inside one it fails the COPY alone.
 */
const REFUSE_COPY = message('f', strings('the embedded database takes no COPY data, use INSERT'));

/** undefined when the client has said goodbye or is gone. */
export async function readUnit(reader: MessageReader, prepared: PreparedStatements): Promise<Unit | undefined> {
  const parts: Buffer[] = [];
  const sql: string[] = [];
  for (let size = 0; size < UNIT_LIMIT;) {
    const received = await reader.message();
    if (!received || typeOf(received) === 'X') return undefined;
    const type = checkedType(received);
    const passedOn = forPGlite(type, prepared.rename(received));
    parts.push(...passedOn);
    size += received.length;
    if (type === 'Q') sql.push(stringAt(received, 5).text);
    if (type === 'P') sql.push(stringAt(received, stringAt(received, 5).next).text);
    if ('QSFH'.includes(type)) return { bytes: Buffer.concat(parts), sql, complete: type !== 'H' };
  }
  return { bytes: Buffer.concat(parts), sql, complete: false };
}

/** A message that Postgres does not know makes PGlite spin for ever, so only known ones pass. */
function checkedType(received: Buffer): string {
  const type = typeOf(received);
  if ('QPBDECSFHdcf'.includes(type)) return type;
  throw new ProtocolError('08P01', `invalid frontend message type ${received[0]}`);
}

function forPGlite(type: string, renamed: Buffer): Buffer[] {
  if ('dcf'.includes(type)) return [];
  return type === 'Q' || type === 'E' ? [renamed, REFUSE_COPY] : [renamed];
}
