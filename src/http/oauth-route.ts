import type { FastifyRequest } from 'fastify';

/** Routes that speak OAuth: Basic authentication before the body is read, errors after RFC 6749 §5.2. */
export const OAUTH_ROUTE = { oauth: true, internal: false };
/** The same, and open to the internal credential too. */
export const INTERNAL_OAUTH_ROUTE = { oauth: true, internal: true };

export type OAuthRoute = typeof OAUTH_ROUTE;

/** RFC 6749 §5.1. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/** The matched route where it is one of OAuth, else null. */
export function oauthRoute({ routeOptions }: FastifyRequest): OAuthRoute | null {
  const config = routeOptions.config as Partial<OAuthRoute> | undefined;
  return config?.oauth === true ? (config as OAuthRoute) : null;
}

/** Also an address below /auth that no route has: its callers speak OAuth. */
export const speaksOAuth = (request: FastifyRequest): boolean =>
  oauthRoute(request) !== null || isBelowAuth(pathOf(request.url));

export const isBelowAuth = (path: string): boolean => /^\/auth(\/|$)/.test(path);

/** The path of a request target, be it in absolute form (RFC 9112 §3.2.2), decoded where it can be. */
export function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split('?')[0] ?? '';
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
