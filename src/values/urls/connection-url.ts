import { isIP } from 'node:net';
import { parseUrl, socketHost } from './notify-url.js';

interface Endpoint {
  host: string;
  port: number;
}

const SENTINEL_PORT = 26_379;
const SENTINEL_FORM = /^(rediss?\+sentinel:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?#][^]*)?$/i;

/** `redis+sentinel://user:password@host:26379,host:26379/name/0`. The parts of URL itself are those of its first host. */
export class SentinelUrl extends URL {
  constructor(
    firstHost: string,
    private readonly text: string,
    readonly sentinels: Endpoint[],
  ) {
    super(firstHost);
  }

  /** The name by which the Sentinels know the primary and its replicas. */
  get group(): string {
    return decodeURIComponent(this.pathname.split('/')[1] ?? '');
  }

  get database(): string {
    return this.pathname.split('/').slice(2).join('/');
  }

  /** With all hosts, as it was configured. */
  override toString(): string {
    return this.text;
  }
}

/** Parses the URL of a database or queue, which may name several Sentinels. Null if it is not a URL. */
export function parseConnectionUrl(text: string): URL | null {
  const [, before = '', hosts, after = ''] = SENTINEL_FORM.exec(text) ?? [];
  if (hosts === undefined) return parseUrl(text);
  const names = hosts.split(',');
  const firstHost = `${before}${names[0]}${after}`;
  const sentinels = names.map(endpointOf).filter((endpoint) => endpoint !== null);
  if (sentinels.length < names.length || !parseUrl(firstHost)) return null;
  return new SentinelUrl(firstHost, text, sentinels);
}

function endpointOf(text: string): Endpoint | null {
  const url = text === '' ? null : parseUrl(`redis://${text}`);
  return url && { host: socketHost(url), port: Number(url.port || SENTINEL_PORT) };
}

type UrlKind = 'mysql' | 'postgres' | 'redis';

/** The allowed query parameters of a connection URL and their values. An empty list allows any value. */
const PARAMETERS: Record<UrlKind | 'Sentinel', Record<string, string[]>> = {
  // The names of MySQL's own clients. REQUIRED encrypts but does not check the certificate.
  mysql: { 'ssl-mode': ['DISABLED', 'REQUIRED', 'VERIFY_IDENTITY'] },
  // `require` is not allowed, because libpq does not check the certificate with it and pg does.
  postgres: { sslmode: ['disable', 'no-verify', 'verify-full'], host: [] },
  redis: {},
  // The user and password before the hosts are those of Redis. The Sentinels may have others.
  Sentinel: { sentinel_username: [], sentinel_password: [] },
};

/** What is wrong with the parameters or the path of a connection URL and how to correct it, or null. */
export function connectionUrlFault(kind: UrlKind, url: URL): string | null {
  return (
    parameterFault(url instanceof SentinelUrl ? 'Sentinel' : kind, url) ?? (kind === 'redis' ? pathFault(url) : null)
  );
}

function parameterFault(
  kind: keyof typeof PARAMETERS,
  { hostname, pathname, search, searchParams }: URL,
): string | null {
  // A part of the password would be taken for the name of a database, and servers' messages show that name.
  if (/@/.test(pathname + search)) return 'an @ follows the host; in a password use %2F for /, %3F for ? and %40 for @';
  const allowed = PARAMETERS[kind];
  const names = Object.keys(allowed);
  const remedy = names.length === 0 ? 'remove it (for TLS use rediss://)' : `use ${names.join(', ')}`;
  for (const [name, value] of searchParams) {
    const values = allowed[name];
    // The parameter is not shown, because it may be part of a password with an unescaped ?.
    if (values === undefined) return `a parameter after ? is not one of ${kind} URLs; ${remedy}`;
    if (values.length > 0 && !values.includes(value)) return `${name} is invalid; use ${values.join(', ')}`;
  }
  // For an IP address, mysql2 would accept a certificate for `localhost`.
  if (searchParams.get('ssl-mode') === 'VERIFY_IDENTITY' && isIP(socketHost({ hostname })) !== 0)
    return 'ssl-mode=VERIFY_IDENTITY needs a host name; use the server’s name instead of its IP address';
  return null;
}

function pathFault(url: URL): string | null {
  if (!(url instanceof SentinelUrl))
    return /^\/?\d{0,4}$/.test(url.pathname)
      ? null
      : 'a Redis database is a number; use a URL like redis://host:6379/0';
  if (url.group === '')
    return 'the name of the primary is missing; use a URL like redis+sentinel://host:26379,host:26379/mymaster';
  return /^\d{0,4}$/.test(url.database)
    ? null
    : 'a Redis database is a number; use a URL like redis+sentinel://host:26379/mymaster/0';
}

const ENCRYPTED = ['REQUIRED', 'VERIFY_IDENTITY', 'no-verify', 'verify-full'];
const LOCAL_HOST = /^(localhost|127\..*|\[::1\])?$/;

/** True if the connection crosses a network without encryption. Unix sockets and loopback addresses do not. */
export function isUnencrypted({ protocol, hostname, searchParams }: URL): boolean {
  const mode = searchParams.get('ssl-mode') ?? searchParams.get('sslmode') ?? '';
  if (protocol.startsWith('rediss') || ENCRYPTED.includes(mode)) return false;
  return !LOCAL_HOST.test(hostname) && !searchParams.has('host');
}
