import { parseUrl } from '../values/urls/notify-url.js';
export const MAX_REDIRECT_URI_LENGTH = 2_048;

const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];

export const isLoopbackUrl = ({ protocol, hostname }: URL): boolean =>
  protocol === 'http:' && LOOPBACK.includes(hostname);

/**
 * Says why a redirect URI cannot be registered; null if it can. It is compared exactly, so it must be written as a browser
 * sends it (RFC 9700 section 4.1.3). `allowLoopback`: http is accepted for this machine.
 */
export function redirectUriFault(text: string, allowLoopback: boolean): string | null {
  if (text.length > MAX_REDIRECT_URI_LENGTH) return `is longer than ${MAX_REDIRECT_URI_LENGTH} characters`;
  const url = /^[\x21-\x7e]+$/.test(text) ? parseUrl(text) : null;
  if (!url) return 'is not a URL; use one like https://app.example/callback';
  if (url.protocol !== 'https:' && !(allowLoopback && isLoopbackUrl(url)))
    return allowLoopback ? 'must begin with https://, or with http:// for 127.0.0.1' : 'must begin with https://';
  if (text.includes('#')) return 'has a fragment; remove everything from # on';
  if (url.username !== '' || url.password !== '') return 'has credentials; remove them';
  return url.href === text ? null : `is not in its normal form; use ${url.href}`;
}
