import { BlockList, isIP, isIPv4 } from 'node:net';

/**
 * Parses an absolute URL. Null if the text is not a URL.
 *
 * `URL.canParse` is not used. In Node 20, once V8 has optimised its caller, it answers false for texts with letters such as ü.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** The host of a URL in the form that sockets need: an IPv6 address has no brackets. */
export const socketHost = ({ hostname }: Pick<URL, 'hostname'>): string => hostname.replace(/^\[|\]$/g, '');

/** A name of DNS has at most 253 characters; a colon and a port may follow. */
const MAX_NAME_LENGTH = 253;
export const HOST_LENGTH = 260;

/** The host of a Notify URL, with the port if it has one. Cut, because 0.2.0 accepted names of any length. */
export const hostOf = (notifyUrl: string): string => new URL(notifyUrl).host.slice(0, HOST_LENGTH);

export interface NotifyUrlPolicy {
  allowPrivateHosts: boolean;
  httpsOnly: boolean;
}

/** The message says what to change. It is shown to the person who registers the URL. */
export class NotifyUrlError extends Error {
  override readonly name = 'NotifyUrlError';
}

export const NOTIFY_URL_MAX_LENGTH = 2048;

// From IANA's special-purpose registries and the documentation of cloud metadata services. The first match counts.
const RANGES = [
  ['metadata', ['169.254.169.254/32', '100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32']],
  ['metadata', ['fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128', 'fd00:c1::a9fe:a9fe/128']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['unspecified', ['0.0.0.0/8', '::/128']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10']],
  ['shared', ['100.64.0.0/10']],
  ['benchmarking', ['198.18.0.0/15', '2001:2::/48']],
  ['documentation', ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32', '3fff::/20']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  ['tunnel', ['2002::/16', '2001::/32', '64:ff9b:1::/48', '192.88.99.0/24']],
  ['reserved', ['192.0.0.0/24', '240.0.0.0/4', '2001::/23']],
  ['public', ['0.0.0.0/0', '2000::/3']],
] as const;

export type AddressKind = (typeof RANGES)[number][0] | 'invalid';

// The kinds that the setting for private hosts allows. Tunnels are not included, because their destination is unknown.
const PRIVATE_HOST_KINDS: ReadonlySet<AddressKind> = new Set(['private', 'shared', 'loopback', 'benchmarking']);

// Mapped addresses (RFC 4291 §2.5.5.2) and NAT64 (RFC 6052) lead to the IPv4 address in their last 32 bits.
const MAPPED = '::ffff:0:0/96';
const IS_MAPPED = blockList([MAPPED]);
const CONTAINS_IPV4 = blockList([MAPPED, '64:ff9b::/96']);

const KINDS = RANGES.map(([kind, subnets]) => ({ kind, list: blockList(subnets) }));

const LOCALHOST_NAMES = /^(?:.+\.)?(?:localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)$/;

export function addressKind(ip: string): AddressKind {
  const given = ip.replace(/%.*$/, '');
  if (isIP(given) === 0) return 'invalid';
  const address = isIPv4(given) || !CONTAINS_IPV4.check(given, 'ipv6') ? given : lastIPv4(given);
  return KINDS.find(({ list }) => list.check(address, familyOf(address)))?.kind ?? 'reserved';
}

/** Link-local and metadata addresses are always refused. */
export function isAllowedAddress(ip: string, allowPrivateHosts: boolean): boolean {
  const kind = addressKind(ip);
  return kind === 'public' || (allowPrivateHosts && PRIVATE_HOST_KINDS.has(kind));
}

/** Checks a Notify URL at registration. Names are not resolved here; every address is checked when Usher connects. */
export function checkNotifyUrl(url: string, policy: NotifyUrlPolicy): URL {
  const parsed = parseHttpUrl(url);
  const fault = faultOf(parsed, policy);
  if (fault !== null) throw new NotifyUrlError(fault);
  return parsed;
}

/** Parses an absolute http or https URL. Rejects text that the URL parser would silently correct. */
export function parseHttpUrl(url: string): URL {
  if (url.length > NOTIFY_URL_MAX_LENGTH)
    throw new NotifyUrlError(
      `The Notify URL may have at most ${NOTIFY_URL_MAX_LENGTH} characters; this one has ${url.length}.`,
    );
  if (url.trim() !== url) throw new NotifyUrlError('Remove the space at the beginning or the end of the Notify URL.');
  const parsed = /^https?:\/\/[^/\\\s\p{Cs}][^\s\\\p{Cc}\p{Cs}]*$/iu.test(url) ? parseUrl(url) : null;
  if (!parsed)
    throw new NotifyUrlError(
      'The Notify URL must be an absolute http or https URL, such as https://example.com/notify.',
    );
  if (parsed.href.length > NOTIFY_URL_MAX_LENGTH)
    throw new NotifyUrlError(
      `The Notify URL may have at most ${NOTIFY_URL_MAX_LENGTH} characters once percent-encoded.`,
    );
  return parsed;
}

function faultOf(url: URL, { allowPrivateHosts, httpsOnly }: NotifyUrlPolicy): string | null {
  const { href, protocol, port } = url;
  if (url.username !== '' || url.password !== '')
    return 'Remove the user name and password from the Notify URL; notifications are signed instead.';
  if (href.includes('#')) return 'Remove the fragment (#…) from the Notify URL; it is never sent to a receiver.';
  if (httpsOnly && protocol !== 'https:') return 'The Notify URL must start with https://.';
  if (port !== '' && Number(port) < 1024 && !['80', '443'].includes(port))
    return `Port ${port} is not allowed in a Notify URL; use 80, 443 or a port from 1024 to 65535.`;
  const host = socketHost(url).replace(/\.+$/, '');
  if (host.length > MAX_NAME_LENGTH)
    return `The host of the Notify URL may have at most ${MAX_NAME_LENGTH} characters.`;
  if (isIP(host) !== 0 && !isAllowedAddress(host, allowPrivateHosts))
    return `The Notify URL points to ${host} (${addressKind(host)}), which is not allowed; use a public host.`;
  return !allowPrivateHosts && LOCALHOST_NAMES.test(host)
    ? `The Notify URL points to this machine (${host}); use a public host.`
    : null;
}

export function familyOf(address: string) {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}

/** The eight groups of an IPv6 address, in hexadecimal without leading zeros. */
export function ipv6Groups(address: string): string[] {
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [left = [], right = []] = canonical.split('::').map((half) => half.split(':').filter(Boolean));
  const gap = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...gap, ...right];
}

/** The IPv4 address that a mapped one stands for, in whichever form it is written. Any other IP address stays as it is. */
export function withoutMapping(address: string): string {
  return !isIPv4(address) && IS_MAPPED.check(address, 'ipv6') ? lastIPv4(address) : address;
}

function lastIPv4(address: string): string {
  const bytes = ipv6Groups(address)
    .slice(-2)
    .map((group) => Number.parseInt(group, 16))
    .flatMap((value) => [value >> 8, value & 0xff]);
  return bytes.join('.');
}

export function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = '', prefix] = subnet.split('/');
    if (prefix === undefined) list.addAddress(network, familyOf(network));
    else list.addSubnet(network, Number(prefix), familyOf(network));
  }
  return list;
}
