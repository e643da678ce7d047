import type { FastifyRequest } from 'fastify';
import { hasCredentials } from '../../http/basic-credentials.js';
import { pathOf } from '../../http/oauth-route.js';
import { Problem, unauthorized } from '../../http/problem.js';
import type { Credentials } from '../../usher.options.js';

const CHALLENGE = 'Basic realm="usher ops", charset="UTF-8"';
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Checks every request first: at and below /ops only the operator is allowed, and writes only from its own pages.
 * Returns the error to refuse the request with, or null.
 */
export function operatorRefusal(request: FastifyRequest, operator: Credentials): Problem | null {
  if (!isBelowOps(request)) return null;
  if (!hasCredentials(request.headers.authorization, operator)) {
    return unauthorized('send OPS_USER and OPS_PASSWORD by HTTP Basic', CHALLENGE);
  }
  if (SAFE_METHODS.includes(request.method) || !isCrossSite(request)) return null;
  return new Problem(403, 'Forbidden', 'this request comes from a page of another site; use the pages at /ops');
}

/** Checks the route that Fastify matched, however the path was written, and the path itself if no route matched. */
function isBelowOps({ routeOptions, url }: FastifyRequest): boolean {
  const path = url.split('?')[0] ?? '';
  return [routeOptions.url ?? '', path, pathOf(url)].some((spelling) => /^\/+ops(\/|$)/i.test(spelling));
}

function isCrossSite({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const { origin, host } = headers;
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host);
}
