import { isIP } from 'node:net';

/** The host of a URL as sockets take it: an IPv6 address without its brackets. */
export const socketHost = ({ hostname }: Pick<URL, 'hostname'>): string => hostname.replace(/^\[|\]$/g, '');

/** What may follow the ? of an address: names, and the values that each can have (any, where none are listed). */
const PARAMETERS: Record<'mysql' | 'postgres' | 'redis', Record<string, string[]>> = {
  // As MySQL's own clients call them. REQUIRED encrypts and checks nothing.
  mysql: { 'ssl-mode': ['DISABLED', 'REQUIRED', 'VERIFY_IDENTITY'] },
  // libpq's `require` checks nothing, pg's does: neither is taken for the other here.
  postgres: { sslmode: ['disable', 'no-verify', 'verify-full'], host: [] },
  redis: {},
};

/** What is wrong with the parameters of an address and what would be right, or null. */
export function parameterFault(kind: keyof typeof PARAMETERS, { hostname, searchParams }: URL): string | null {
  const allowed = PARAMETERS[kind];
  for (const [name, value] of searchParams) {
    const values = allowed[name];
    if (values === undefined) return `?${name} is not known for ${kind}; ${told(kind)}`;
    if (values.length > 0 && !values.includes(value)) return `${name} is not possible so; write ${values.join(', ')}`;
  }
  // Of an address mysql2 would accept a certificate for `localhost`.
  if (searchParams.get('ssl-mode') === 'VERIFY_IDENTITY' && isIP(socketHost({ hostname })) !== 0)
    return 'ssl-mode=VERIFY_IDENTITY needs the server’s name in place of its address';
  return null;
}

const ENCRYPTED = ['REQUIRED', 'VERIFY_IDENTITY', 'no-verify', 'verify-full'];
const THIS_MACHINE = /^(localhost|127\..*|\[::1\])?$/;

/** Whether what is sent to this address can be read on its way. A socket and a loopback address have no way. */
export function isUnencrypted({ protocol, hostname, searchParams }: URL): boolean {
  const mode = searchParams.get('ssl-mode') ?? searchParams.get('sslmode') ?? '';
  if (protocol === 'rediss:' || ENCRYPTED.includes(mode)) return false;
  return !THIS_MACHINE.test(hostname) && !searchParams.has('host');
}

function told(kind: keyof typeof PARAMETERS): string {
  const names = Object.keys(PARAMETERS[kind]);
  return names.length === 0 ? 'it takes none (TLS is rediss://)' : `it takes ${names.join(', ')}`;
}
