import { applyDecorators, SetMetadata } from '@nestjs/common';

/**
 * Metadata key of every controller of Usher. A global guard of an application reads it to let Usher's own guards decide:
 * `reflector.getAllAndOverride(USHER_ROUTE, [context.getHandler(), context.getClass()])`.
 */
export const USHER_ROUTE = 'usher:route';

/** Marks a controller of Usher. */
export const UsherRoute = (): ClassDecorator => SetMetadata(USHER_ROUTE, true);

/** `internal`: whether the internal credential may call the route too. */
export interface OAuthRouteOptions {
  internal: boolean;
}

export const OAUTH_ROUTE = 'usher:oauth-route';

/** The key under which @nestjs/platform-fastify looks for a route's `config`. The package is optional, so it is not imported. */
const FASTIFY_ROUTE_CONFIG = '__fastify_route_config__';

/** Marks a route whose clients authenticate by Basic and whose errors are those of RFC 6749. */
export const OAuthRoute = (options: OAuthRouteOptions): MethodDecorator =>
  applyDecorators(SetMetadata(OAUTH_ROUTE, options), SetMetadata(FASTIFY_ROUTE_CONFIG, { oauth: true, ...options }));
