import { ProtocolError } from './protocol-error.js';

const CANCEL_REQUEST = 80877102;
const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;
const PROTOCOL_3_0 = 196608;

export type Startup = { kind: 'encrypt' } | { kind: 'cancel' } | { kind: 'start'; searchPath: string | undefined };

export function readStartup(packet: Buffer): Startup {
  const code = packet.readInt32BE(4);
  if (code === SSL_REQUEST || code === GSS_REQUEST) return { kind: 'encrypt' };
  if (code === CANCEL_REQUEST) return { kind: 'cancel' };
  if (code !== PROTOCOL_3_0) throw new ProtocolError('0A000', 'only protocol version 3.0 is spoken here');
  return { kind: 'start', searchPath: searchPathIn(parametersIn(packet).get('options') ?? '') };
}

function parametersIn(packet: Buffer): Map<string, string> {
  const texts = packet.toString('utf8', 8).split('\0');
  const parameters = new Map<string, string>();
  for (let i = 0; i + 1 < texts.length && texts[i]; i += 2) parameters.set(texts[i] ?? '', texts[i + 1] ?? '');
  return parameters;
}

/** The session is shared, so a setting that nobody would switch back is refused rather than ignored. */
function searchPathIn(options: string): string | undefined {
  let searchPath: string | undefined;
  for (const setting of settingsIn(options)) {
    const [, name, value] = /^([\w.-]+)=(.*)$/s.exec(setting) ?? [];
    if (name !== 'search_path') throw new ProtocolError('0A000', `unsupported connection option "${setting}"`);
    searchPath = value;
  }
  return searchPath;
}

/** `-c name=value`, `-cname=value` and `--name=value`; a backslash escapes a space, as in PostgreSQL's `options`. */
function settingsIn(options: string): string[] {
  const words = (options.match(/(?:\\[^]|[^\s\\])+/g) ?? []).map((word) => word.replace(/\\([^])/g, '$1'));
  const settings: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '-c') settings.push(words[++i] ?? '');
    else settings.push(word.replace(/^(-c|--)/, ''));
  }
  return settings;
}
