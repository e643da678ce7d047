import type { FastifyRequest } from 'fastify';
import { isOfOtherSite } from '../../../http/pages/form-token.js';
import { parseUrl } from '../../../values/urls/notify-url.js';

export const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** Whether the browser reaches this server over https, as far as a proxy or USHER_AUTH_URL tells. */
export function isEncrypted({ headers, protocol }: FastifyRequest, publicUrl: string | null): boolean {
  const { host = '' } = headers;
  return protocol === 'https' || (publicUrl !== null && `https://${host}` === new URL(publicUrl).origin);
}

/** What a browser tells of the page that sends a request. Programs send none of these headers. */
export function isCrossSite(request: FastifyRequest, publicUrl: string | null): boolean {
  const { headers } = request;
  if (isOfOtherSite(headers)) return true;
  const address = pageOf(request);
  if (address === undefined) return false;
  const page = parseUrl(address);
  if (page === null || page.host !== (headers.host ?? '')) return true;
  // A proxy may end TLS without telling, so a page over https is accepted in either case.
  return isEncrypted(request, publicUrl) && page.protocol !== 'https:';
}

/** Whether the request says which page sent it. Every browser says so of a request that writes. */
export const namesItsPage = (request: FastifyRequest): boolean =>
  request.headers['sec-fetch-site'] !== undefined || pageOf(request) !== undefined;

const pageOf = ({ headers }: FastifyRequest): string | undefined => headers.origin ?? headers.referer;
