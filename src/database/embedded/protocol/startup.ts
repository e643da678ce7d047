import { int32, message, parameterStatus, ProtocolError, readyForQuery } from './messages.js';

const CANCEL_REQUEST = 80877102;
const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;
const PROTOCOL_3_0 = 196608;

/** `encrypt` is an SSL or GSS request; `start` is the startup message itself. */
export type StartupPacket =
  { kind: 'encrypt' } | { kind: 'cancel' } | { kind: 'start'; searchPath: string | undefined };

export function parseStartupPacket(packet: Buffer): StartupPacket {
  const code = packet.readInt32BE(4);
  if (code === SSL_REQUEST || code === GSS_REQUEST) return { kind: 'encrypt' };
  if (code === CANCEL_REQUEST) return { kind: 'cancel' };
  if (code !== PROTOCOL_3_0) throw new ProtocolError('0A000', 'only protocol version 3.0 is supported');
  return { kind: 'start', searchPath: searchPathIn(parametersIn(packet).get('options') ?? '') };
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
  const statuses = Object.entries(parameters).map(([name, value]) => parameterStatus(name, value));
  const keyData = message('K', Buffer.concat([int32(processId), int32(0)]));
  return Buffer.concat([authenticationOk, ...statuses, keyData, readyForQuery]);
}

function parametersIn(packet: Buffer): Map<string, string> {
  const texts = packet.toString('utf8', 8).split('\0');
  const parameters = new Map<string, string>();
  for (let i = 0; i + 1 < texts.length && texts[i]; i += 2) parameters.set(texts[i] ?? '', texts[i + 1] ?? '');
  return parameters;
}

/** Refuses every other setting: connections share one session, which would keep it for all of them. */
function searchPathIn(options: string): string | undefined {
  let searchPath: string | undefined;
  for (const setting of settingsIn(options)) {
    const [, name, value] = /^([\w.-]+)=(.*)$/s.exec(setting) ?? [];
    if (name !== 'search_path') throw new ProtocolError('0A000', `unsupported connection option "${setting}"`);
    searchPath = value;
  }
  return searchPath;
}

/** Accepts `-c name=value`, `-cname=value` and `--name=value`; a backslash escapes a space, as in PostgreSQL. */
function settingsIn(options: string): string[] {
  const args = (options.match(/(?:\\[^]|[^\s\\])+/g) ?? []).map((arg) => arg.replace(/\\([^])/g, '$1'));
  const settings: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    if (arg === '-c') settings.push(args[++i] ?? '');
    else settings.push(arg.replace(/^(-c|--)/, ''));
  }
  return settings;
}
