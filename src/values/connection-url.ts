import { isIP } from 'node:net';

/** Which kind of database a URL names, by its scheme. */
export const DATABASE_SCHEMES: Record<string, 'mysql' | 'postgres'> = {
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
};

/** Which kind of queue a URL names, by its scheme. */
export const QUEUE_SCHEMES: Record<string, 'redis' | 'postgres'> = {
  'redis:': 'redis',
  'rediss:': 'redis',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
};

/** The host of a URL in the form that sockets need: an IPv6 address has no brackets. */
export const socketHost = ({ hostname }: Pick<URL, 'hostname'>): string => hostname.replace(/^\[|\]$/g, '');

/** The allowed query parameters of a connection URL and their values. An empty list allows any value. */
const PARAMETERS: Record<'mysql' | 'postgres' | 'redis', Record<string, string[]>> = {
  // The names of MySQL's own clients. REQUIRED encrypts but does not check the certificate.
  mysql: { 'ssl-mode': ['DISABLED', 'REQUIRED', 'VERIFY_IDENTITY'] },
  // `require` is not allowed, because libpq does not check the certificate with it and pg does.
  postgres: { sslmode: ['disable', 'no-verify', 'verify-full'], host: [] },
  redis: {},
};

/** What is wrong with the parameters of a connection URL and how to correct it, or null. */
export function parameterFault(kind: keyof typeof PARAMETERS, { hostname, searchParams }: URL): string | null {
  const allowed = PARAMETERS[kind];
  for (const [name, value] of searchParams) {
    const values = allowed[name];
    if (values === undefined) return `?${name} is not a parameter of ${kind} URLs; ${remedyFor(kind)}`;
    if (values.length > 0 && !values.includes(value)) return `${name}=${value} is invalid; use ${values.join(', ')}`;
  }
  // For an IP address, mysql2 would accept a certificate for `localhost`.
  if (searchParams.get('ssl-mode') === 'VERIFY_IDENTITY' && isIP(socketHost({ hostname })) !== 0)
    return 'ssl-mode=VERIFY_IDENTITY needs a host name; use the server’s name instead of its IP address';
  return null;
}

const ENCRYPTED = ['REQUIRED', 'VERIFY_IDENTITY', 'no-verify', 'verify-full'];
const LOCAL_HOST = /^(localhost|127\..*|\[::1\])?$/;

/** True if the connection crosses a network without encryption. Unix sockets and loopback addresses do not. */
export function isUnencrypted({ protocol, hostname, searchParams }: URL): boolean {
  const mode = searchParams.get('ssl-mode') ?? searchParams.get('sslmode') ?? '';
  if (protocol === 'rediss:' || ENCRYPTED.includes(mode)) return false;
  return !LOCAL_HOST.test(hostname) && !searchParams.has('host');
}

function remedyFor(kind: keyof typeof PARAMETERS): string {
  const names = Object.keys(PARAMETERS[kind]);
  return names.length === 0 ? 'remove it (for TLS use rediss://)' : `use ${names.join(', ')}`;
}
