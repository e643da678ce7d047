/** Messages of PostgreSQL's frontend/backend protocol 3.0 (PostgreSQL manual, "Message Formats"). */

/** Of the last ReadyForQuery: idle, in a transaction, in a failed transaction. */
type TransactionStatus = 'I' | 'T' | 'E';

/** Ends one connection; `code` is the SQLSTATE its client receives. */
export class ProtocolError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export interface Reply {
  /** Everything for the client that sent the batch, without notifications. */
  bytes: Buffer;
  notifications: Buffer[];
  /** Undefined if the reply holds no ReadyForQuery. */
  status?: TransactionStatus;
  error?: string;
  lastTag?: string;
  firstValue?: string | undefined;
}

export function message(type: string, body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from(type), int32(4 + body.length), body]);
}

/** Zero-terminated strings, one after the other. */
export function strings(...texts: string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\0`).join(''));
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function typeOf(bytes: Buffer): string {
  return String.fromCharCode(bytes[0] ?? 0);
}

/** The zero-terminated string at `start`, and the offset of the next field. */
export function stringAt(bytes: Buffer, start: number): { text: string; next: number } {
  const end = bytes.indexOf(0, start);
  if (end < 0) return { text: bytes.toString('utf8', start), next: bytes.length };
  return { text: bytes.toString('utf8', start, end), next: end + 1 };
}

export const query = (sql: string): Buffer => message('Q', strings(sql));
export const sync = message('S');
const readyForQuery = message('Z', Buffer.from('I'));

/** An ErrorResponse of severity FATAL. */
export function fatal(code: string, text: string): Buffer {
  return message('E', Buffer.concat([strings('SFATAL', 'VFATAL', `C${code}`, `M${text}`), Buffer.from([0])]));
}

/** Splits the backend's bytes into the reply for the client and the notifications, and reads what the owner needs. */
export function readReply(bytes: Buffer): Reply {
  const reply: Reply = { bytes, notifications: [] };
  const forClient: Buffer[] = [];
  for (const part of messagesIn(bytes)) {
    const type = typeOf(part);
    (type === 'A' ? reply.notifications : forClient).push(part);
    if (type === 'Z') reply.status = String.fromCharCode(part[5] ?? 0) as TransactionStatus;
    if (type === 'C') reply.lastTag = stringAt(part, 5).text;
    if (type === 'E') reply.error ??= errorText(part);
    if (type === 'D') reply.firstValue ??= firstColumn(part);
  }
  if (reply.notifications.length > 0) reply.bytes = Buffer.concat(forClient);
  return reply;
}

export function channelOf(notification: Buffer): string {
  return stringAt(notification, 9).text;
}

function* messagesIn(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start + 5 <= bytes.length;) {
    const end = start + 1 + bytes.readInt32BE(start + 1);
    yield bytes.subarray(start, end);
    start = end;
  }
}

function errorText(response: Buffer): string {
  const fields = response.toString('utf8', 5).split('\0');
  return fields.find((field) => field.startsWith('M'))?.slice(1) ?? 'unknown error';
}

function firstColumn(row: Buffer): string | undefined {
  if (row.length < 11) return undefined;
  const length = row.readInt32BE(7);
  return length < 0 ? undefined : row.toString('utf8', 11, 11 + length);
}

const CANCEL_REQUEST = 80877102;
const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;
const PROTOCOL_3_0 = 196608;

/** `encrypt` is an SSL or GSS request; an object is what the startup message itself asks for. */
type StartupPacket = 'encrypt' | 'cancel' | { searchPath: string | undefined };

export function parseStartupPacket(packet: Buffer): StartupPacket {
  const code = packet.readInt32BE(4);
  if (code === SSL_REQUEST || code === GSS_REQUEST) return 'encrypt';
  if (code === CANCEL_REQUEST) return 'cancel';
  if (code !== PROTOCOL_3_0) throw new ProtocolError('0A000', 'only protocol version 3.0 is supported');
  const texts = packet.toString('utf8', 8).split('\0');
  const options = texts.find((_, index) => index % 2 === 1 && texts[index - 1] === 'options');
  return { searchPath: searchPathIn(options ?? '') };
}

/** Accepts the client without a password: the socket is accessible to its own user only. */
export function startupReply(serverVersion: string, processId: number): Buffer {
  const parameters = {
    server_version: serverVersion,
    server_encoding: 'UTF8',
    client_encoding: 'UTF8',
    DateStyle: 'ISO, MDY',
    TimeZone: 'UTC',
    integer_datetimes: 'on',
    standard_conforming_strings: 'on',
  };
  const authenticationOk = message('R', int32(0));
  const statuses = Object.entries(parameters).map((parameter) => message('S', strings(...parameter)));
  const keyData = message('K', Buffer.concat([int32(processId), int32(0)]));
  return Buffer.concat([authenticationOk, ...statuses, keyData, readyForQuery]);
}

/** It changes nothing: every session has it. */
const DEFAULT_ISOLATION = 'default_transaction_isolation=read committed';

/** Refuses every other setting: connections share one session, which would keep it for all of them. */
function searchPathIn(options: string): string | undefined {
  let searchPath: string | undefined;
  for (const setting of settingsIn(options)) {
    if (setting === DEFAULT_ISOLATION) continue;
    const [, name, value] = /^([\w.-]+)=(.*)$/s.exec(setting) ?? [];
    if (name !== 'search_path') throw new ProtocolError('0A000', `unsupported connection option "${setting}"`);
    searchPath = value;
  }
  return searchPath;
}

/** Accepts `-c name=value`, `-cname=value` and `--name=value`; a backslash escapes a space, as in PostgreSQL. */
function settingsIn(options: string): string[] {
  const args = options.match(/(?:-c\s+)?(?:\\[^]|[^\s\\])+/g) ?? [];
  return args.map((arg) => arg.replace(/^(?:-c\s*|--)/, '').replace(/\\([^])/g, '$1'));
}
