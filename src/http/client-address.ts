import { isIP } from 'node:net';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * The key under which rate limits count an address: an IPv4 address itself, or the /64 network of an IPv6 address,
 * because one household or server usually has a whole /64.
 */
export function addressGroup(address: string): string {
  const plain = address.replace(/%.*$/, '');
  const ipv4 = MAPPED_IPV4.exec(plain)?.[1] ?? plain;
  if (isIP(ipv4) === 4) return ipv4;
  return isIP(plain) === 6 ? `${network(plain).join(':')}::/64` : 'unknown';
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
