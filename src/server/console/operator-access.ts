import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FixedCredentials } from '../../auth/client-authentication/fixed-credentials.js';
import { pathOf } from '../../http/oauth-route.js';
import { Problem } from '../../http/problem.js';
import type { Config } from '../settings/settings.js';
import { OPS_HEADERS } from './page.js';

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** Matches the route that Fastify matched, however the path was written, and the path itself if no route matched. */
export function isBelowOps({ routeOptions, url }: FastifyRequest): boolean {
  const path = url.split('?')[0] ?? '';
  return [routeOptions.url ?? '', path, pathOf(url)].some((spelling) => /^\/+ops(\/|$)/i.test(spelling));
}

/**
 * Checks every request at and below /ops before anything else: only the operator is allowed, and writes only from its
 * own pages. Throws the {@link Problem} to refuse the request with.
 */
export async function checkOperator(
  request: FastifyRequest,
  reply: FastifyReply,
  { operator, publicUrl }: Pick<Config, 'operator' | 'publicUrl'>,
  credentials: FixedCredentials,
): Promise<void> {
  reply.headers(OPS_HEADERS);
  await credentials.check(request, 'operator', operator);
  if (!SAFE_METHODS.includes(request.method) && isCrossSite(request, publicUrl))
    throw new Problem(403, 'Forbidden', 'this request comes from a page of another site; use the pages at /ops');
}

/** What a browser tells of the page that sends a request. Programs send none of these headers. */
function isCrossSite({ headers, protocol }: FastifyRequest, publicUrl: string | null): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const page = headers.origin ?? headers.referer;
  if (page === undefined) return false;
  const { host = '' } = headers;
  if (!URL.canParse(page) || new URL(page).host !== host) return true;
  const isEncrypted = protocol === 'https' || `https://${host}` === originOf(publicUrl);
  // A proxy may end TLS without telling, so a page over https is accepted in either case.
  return isEncrypted && new URL(page).protocol !== 'https:';
}

const originOf = (url: string | null): string | null => (url === null ? null : new URL(url).origin);
