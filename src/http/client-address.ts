import { isIP } from 'node:net';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** Some proxies write `192.0.2.1:54321` or `[2001:db8::1]:54321` into X-Forwarded-For. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/;
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** The IP address in a client's address, without a port, brackets or a zone. Null if there is none. */
export function plainAddress(text: string): string | null {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  const address = (inBrackets ?? beforePort ?? text).replace(/%.*$/, '');
  const plain = MAPPED_IPV4.exec(address)?.[1] ?? address;
  return isIP(plain) === 0 ? null : plain;
}

/**
 * The key under which rate limits count an address: an IPv4 address itself, or the /64 network of an IPv6 address,
 * because one household or server usually has a whole /64.
 */
export function addressGroup(address: string): string {
  if (isIP(address) === 4) return address;
  const plain = plainAddress(address);
  if (plain === null) return 'unknown';
  return isIP(plain) === 4 ? plain : `${network(plain).join(':')}::/64`;
}

/** The first four groups of an IPv6 address, without `::`. */
function network(ipv6: string): string[] {
  const [head = '', tail = ''] = ipv6.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':').flatMap(replaceIpv4));
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  const gap = Array.from({ length: GROUPS - left.length - right.length }, () => '0');
  return [...left, ...gap, ...right].slice(0, NETWORK_GROUPS).map((group) => parseInt(group, 16).toString(16));
}

/** `1.2.3.4` at the end of an IPv6 address takes two groups. They are not in the network part, so zeros suffice. */
const replaceIpv4 = (group: string): string[] => (group.includes('.') ? ['0', '0'] : [group]);
