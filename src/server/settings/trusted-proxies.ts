import { isIP } from 'node:net';

/** Whose X-Forwarded-For counts: of so many proxies in front, or of proxies at these addresses; null: nobody's. */
export type TrustedProxies = { hops: number } | { addresses: string[] } | null;

/** `2`, or `10.0.0.1, 192.168.0.0/16, ::1`; `0` is nobody. Undefined where the text is neither. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) === 0 ? null : { hops: Number(text) };
  const addresses = text.split(',').map((address) => address.trim());
  return addresses.every(isAddressOrRange) ? { addresses } : undefined;
}

function isAddressOrRange(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
}
