import { resolve } from 'node:path';
import { connectionUrlFault, parseConnectionUrl } from '../values/urls/connection-url.js';
import { parseUrl } from '../values/urls/notify-url.js';
import { Fault, type Kind, text } from './option-kinds.js';

/** The kind of server that a URL names, by its scheme. */
const POSTGRES = { 'postgres:': 'postgres', 'postgresql:': 'postgres' } as const;
const QUEUE_SERVERS = {
  ...POSTGRES,
  'redis:': 'redis',
  'rediss:': 'redis',
  'redis+sentinel:': 'redis',
  'rediss+sentinel:': 'redis',
} as const;
const DATABASE_SERVERS = { ...POSTGRES, 'mysql:': 'mysql', 'mariadb:': 'mysql' } as const;

/** It is not known where the password is in an invalid URL, so no message shows any part of it. */
const url = <T>(wanted: string, parse: (text: string) => T | null): Kind<T> => ({
  ...text(wanted, parse),
  isHidden: true,
});

/**
 * Paths are appended to this URL, so it has no query or fragment (RFC 8414 §2). It is public, so it has no credentials. Letters
 * outside ASCII are encoded, because it is sent in headers.
 */
export const httpUrl = url('an http:// or https:// URL without credentials, query or fragment', (value) => {
  const parsed = parseUrl(value);
  const href = parsed?.href ?? '';
  if (!parsed || !/^https?:\/\/[^?#@]*$/.test(href) || !isAsWritten(value, parsed)) return null;
  return (/^[\x21-\x7e]*$/.test(value) ? value : href).replace(/\/+$/, '');
});

/**
 * Clients compare the issuer as text (RFC 8414 §3.3), so a parser may change nothing. Accepted are upper case and a default port
 * in the origin, letters that it encodes, and a missing slash at the end.
 */
function isAsWritten(value: string, { origin, pathname }: URL): boolean {
  const [, written = '', path = ''] = /^(https?:\/\/[^/\\]+)(.*)$/is.exec(value) ?? [];
  const isOrigin =
    /[^\0-\x7f]/.test(written) || [origin, `${origin}:80`, `${origin}:443`].includes(written.toLowerCase());
  const encoded = path.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  return isOrigin && (encoded || '/') === pathname;
}

export const linkUrl = url('an http:// or https:// URL without credentials', (value) =>
  /^https?:\/\/[^@/]*\//.test(parseUrl(value)?.href ?? '') ? value : null,
);

/** A folder with an embedded Postgres, or a server. `join`: use the process that already runs the database in this folder. */
export type DatabaseAddress =
  { kind: 'embedded'; folder: string; join: boolean } | { kind: 'mysql' | 'postgres'; url: URL };

export const databaseUrl = url<DatabaseAddress | null>(
  'a URL like embedded:./data, mysql://user:password@host:3306/name or postgres://…',
  (value) => {
    const [, folder] = /^embedded:(.*)$/s.exec(value) ?? [];
    const embedded = { kind: 'embedded', folder: resolve(folder ?? ''), join: false } as const;
    if (folder === '') throw new Fault(' has no folder; use embedded:./data', embedded);
    if (folder !== undefined) return embedded;
    const server = located(value, DATABASE_SERVERS, connectionUrlFault);
    if (server && server.url.pathname.length < 2)
      throw new Fault(' has no database name; add one at its end, like /usher');
    return server;
  },
);

export const httpOrigin = url('an http:// or https:// URL without credentials and path', (value) => {
  const { href, origin } = parseUrl(value) ?? { href: '', origin: '' };
  return /^https?:/.test(href) && href === `${origin}/` ? origin : null;
});

/** Why production refuses a public address. `what` says which one to set instead. */
export const needsHttps =
  (what: string) =>
  (address: string | null): string | null =>
    address?.startsWith('https:') ? null : `: production needs https://; set ${what}`;

/** `embedded:` is the embedded database. */
export const queueUrl = url(
  'a URL like redis://host:6379, rediss://…, redis+sentinel://host:26379,host:26379/name or postgres://…',
  (value) => (value.startsWith('embedded:') ? 'embedded' : located(value, QUEUE_SERVERS, connectionUrlFault)),
);

export const proxyUrl = url(
  'a URL like http://proxy.example:3128 or https://user:password@proxy.example:3129',
  (value) => {
    const proxy = located(value, { 'http:': 'http', 'https:': 'https' }, pathFault);
    if (/%3a/i.test(proxy?.url.username ?? ''))
      throw new Fault(' has a colon in its user name, which HTTP Basic does not allow; use another user name');
    return proxy && proxy.url;
  },
);

export const smtpUrl = url(
  'a URL like smtp://user:password@mail.example:587 or smtps://user:password@mail.example',
  (value) => {
    const server = located(value, { 'smtp:': 'smtp', 'smtps:': 'smtps' }, pathFault);
    if (server && (server.url.username === '') !== (server.url.password === ''))
      throw new Fault(' has only one of user and password; give both or none');
    return server && server.url;
  },
);

/**
 * A URL with one of the schemes; null if the text is not a URL with one of them. `faultOf` says what else is wrong with it.
 * @throws Fault
 */
function located<K extends string>(
  text: string,
  schemes: Record<string, K>,
  faultOf: (kind: K, url: URL) => string | null,
) {
  const url = parseConnectionUrl(text);
  const kind = url && schemes[url.protocol];
  if (!url || !kind) return null;
  const correction = correctionOf(url);
  if (correction !== null) throw new Fault(` is invalid; use ${correction}`);
  const fault = faultOf(kind, url);
  if (fault !== null) throw new Fault(`: ${fault}`);
  return { kind, url };
}

/** What to use instead if the URL parser reads something else than was meant; null if the URL is valid. */
function correctionOf({ hostname, hash, username, password, pathname, searchParams }: URL): string | null {
  if (hash !== '') return '%23 for a # in a password';
  if (hostname === '' && !searchParams.has('host')) return 'a host after ://';
  try {
    decodeURIComponent(username + password + pathname);
    return null;
  } catch {
    return '%25 for a % in a password';
  }
}

const pathFault = (_kind: string, { pathname, search }: URL): string | null =>
  /^\/?$/.test(pathname) && search === ''
    ? null
    : 'it has a path or query; end it after the port. In a password, use %2F for / and %3F for ?';
