import type { FastifyRequest } from 'fastify';

/** OAuth routes: Basic authentication before the body is read, and errors as in RFC 6749 §5.2. */
export const OAUTH_ROUTE = { oauth: true, internal: false };
/** An OAuth route that also accepts the internal credential. */
export const INTERNAL_OAUTH_ROUTE = { oauth: true, internal: true };

export type OAuthRoute = typeof OAUTH_ROUTE;

/** RFC 6749 §5.1. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/** The matched route if it is an OAuth route, otherwise null. */
export function oauthRoute({ routeOptions }: FastifyRequest): OAuthRoute | null {
  const config = routeOptions.config as Partial<OAuthRoute> | undefined;
  return config?.oauth === true ? (config as OAuthRoute) : null;
}

/** True for OAuth routes and for unknown paths below /auth, whose clients expect OAuth errors. */
export const isOAuthRequest = (request: FastifyRequest): boolean =>
  oauthRoute(request) !== null || isAuthPath(pathOf(request.url));

export const isAuthPath = (path: string): boolean => /^\/auth(\/|$)/.test(path);

/** The path of a request target, also of an absolute one (RFC 9112 §3.2.2). Decoded if the encoding is valid. */
export function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split('?')[0] ?? '';
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
