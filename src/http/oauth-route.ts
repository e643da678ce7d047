import { applyDecorators, SetMetadata } from '@nestjs/common';

/** `internal`: whether the route also accepts the internal credential. */
export interface OAuthRouteOptions {
  internal: boolean;
}

/** Metadata key of {@link OAuthRouteOptions}. */
export const OAUTH_ROUTE = 'usher:oauth-route';

/**
 * Metadata key of every controller of Usher. A global guard of the application reads it, to leave the decision to
 * Usher's own guards: `reflector.getAllAndOverride(USHER_ROUTE, [context.getHandler(), context.getClass()])`.
 */
export const USHER_ROUTE = 'usher:route';

/** Marks a controller as one of Usher's. */
export const UsherRoutes = (): ClassDecorator => SetMetadata(USHER_ROUTE, true);

/** Where @nestjs/platform-fastify finds a route's `config`. That package is optional, so it is not imported here. */
export const FASTIFY_ROUTE_CONFIG = '__fastify_route_config__';

/** Marks an OAuth route: clients authenticate by Basic, and errors are as in RFC 6749 §5.2. */
export const OAuthRoute = (options: OAuthRouteOptions = { internal: false }): MethodDecorator =>
  applyDecorators(SetMetadata(OAUTH_ROUTE, options), SetMetadata(FASTIFY_ROUTE_CONFIG, { oauth: options }));

/** RFC 6749 §5.1. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/** The options of the route that Fastify matched if it is an OAuth route, otherwise null. */
export function oauthRoute(request: object): OAuthRouteOptions | null {
  const { routeOptions } = request as { routeOptions?: { config?: { oauth?: OAuthRouteOptions } } };
  return routeOptions?.config?.oauth ?? null;
}

/** True for OAuth routes and for unknown paths below /auth, whose clients expect OAuth errors. */
export const isOAuthRequest = (request: { url: string }): boolean =>
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
