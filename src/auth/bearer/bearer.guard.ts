import {
  applyDecorators,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Inject,
  Injectable,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { Client } from '../../clients/client.entity.js';
import { ProblemFilter } from '../../http/error-response.js';
import {
  checkSingleHeaders,
  type HttpRequest,
  type HttpResponse,
  parameterFrom,
  setHeaders,
} from '../../http/exchange.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { forbidden, KNOWN_QUERY, Problem, unauthorized } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Environment } from '../../values/identifier.js';
import { AuthPaths } from '../metadata/auth-paths.js';
import { parseToken, wrongEnvironment, wrongKind } from '../tokens/token.js';
import { AccessTokens, type TokenHolder } from './access-tokens.js';

interface BearerRequest extends HttpRequest {
  user?: Client;
  resourceOwnerId?: string | null;
}

/**
 * Requires a valid access token and stores its client on the request, for {@link CurrentClient}. A token that acts for a
 * resource owner opens only routes that ask for the owner by {@link CurrentResourceOwner}; others answer 403.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  static readonly security = ['oauth2', 'bearer'];

  constructor(
    private readonly tokens: AccessTokens,
    private readonly paths: AuthPaths,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<BearerRequest>();
    checkSingleHeaders(request);
    try {
      const holder = await this.holderOf(request);
      if (holder.ownerId !== null && !knowsOwners(context.getHandler())) throw ownerRefused();
      request.user = holder.client;
      request.resourceOwnerId = holder.ownerId;
      return true;
    } catch (error) {
      // The challenge is set here because an embedding application may use its own error filter.
      if (error instanceof Problem) setHeaders(http.getResponse<HttpResponse>(), error.headers);
      throw error;
    }
  }

  private async holderOf({ headers: { authorization }, ip = '' }: BearerRequest): Promise<TokenHolder> {
    const token = bearerToken(authorization);
    const holder = token === null ? null : await this.tokens.holderOf(token);
    if (holder) return holder;
    // Without the header nothing was tried, so nothing counts.
    if (authorization) this.tokens.countInvalid(ip);
    throw token === null ? tokenMissing(authorization, this.paths.base) : invalidToken(token, this.options.environment);
  }
}

const bearerToken = (header = ''): string | null => /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1] ?? null;

/** `base`: what stands before `/auth/token`. */
export const tokenMissing = (header?: string, base = ''): Problem =>
  unauthorized(
    `${lackOf(header)}; send Authorization: Bearer <access_token>, with a token from POST ${base}/auth/token`,
    'Bearer realm="usher"',
  );

function lackOf(header: string | undefined): string {
  if (header === undefined) return 'the access token is missing';
  if (/^basic\b/i.test(header)) return 'this path takes an access token, not the client id and secret';
  return 'the Authorization header is not a Bearer token';
}

/** RFC 6750 §3.1. */
export function invalidToken(token: string, environment: Environment): Problem {
  const parsed = parseToken(token);
  const reason =
    wrongEnvironment(parsed, environment) ??
    wrongKind(parsed, 'access') ??
    'the access token is unknown, expired or revoked; request a new one at the token endpoint';
  return unauthorized(reason, `Bearer realm="usher", error="invalid_token", error_description="${reason}"`);
}

/** RFC 6750 §3.1. */
export const ownerRefused = (): Problem => {
  const reason = 'this token acts for one account; use a token of the client itself (client_credentials)';
  return forbidden(reason).with({
    'WWW-Authenticate': `Bearer realm="usher", error="insufficient_scope", error_description="${reason}"`,
  });
};

/** Injects the {@link Client} that {@link BearerGuard} or `BasicGuard` found. */
export const CurrentClient = parameterFrom((context): Client => {
  const { user } = context.switchToHttp().getRequest<BearerRequest>();
  if (!user) throw new Error('@CurrentClient() needs @UseGuards(BearerGuard) or @UseGuards(BasicGuard)');
  return user;
});

const KNOWS_OWNERS = 'usher:knows-owners';

/** Whether a route separates the data of resource owners, so that their tokens open it. */
export const knowsOwners = (handler: object): boolean => Reflect.getMetadata(KNOWS_OWNERS, handler) === true;

/** Marks a route that separates the data of resource owners. */
const markRoute: ParameterDecorator = (controller, method) => {
  const handler = (controller as Record<PropertyKey, unknown>)[method ?? ''];
  Reflect.defineMetadata(KNOWS_OWNERS, true, handler as object);
};

/**
 * Injects the id of the resource owner for whom the client acts; null if it acts for itself. A route that has it must give an
 * owner's token only what belongs to this owner. A route without it answers such a token 403.
 */
export const CurrentResourceOwner = parameterFrom(
  (context): string | null => context.switchToHttp().getRequest<BearerRequest>().resourceOwnerId ?? null,
  markRoute,
);

/** Whose data a token gives access to: that of its client, or only what the client did for one resource owner. */
export interface Holder {
  clientId: string;
  ownerId: string | null;
}

/** Injects the {@link Holder}. Like {@link CurrentResourceOwner} it opens a route to tokens of resource owners. */
export const CurrentHolder = parameterFrom((context): Holder => {
  const { user, resourceOwnerId = null } = context.switchToHttp().getRequest<BearerRequest>();
  if (!user) throw new Error('@CurrentHolder() needs @UseGuards(BearerGuard)');
  return { clientId: user.id, ownerId: resourceOwnerId };
}, markRoute);

/**
 * The condition on the rows of a client and of a resource owner; null means all. Undefined is refused, because a `DataSource`
 * can leave it out of a `where`, which then also finds the rows of others.
 */
export function heldBy(holder: { clientId: string | null; ownerId: string | null }) {
  const { clientId, ownerId } = Object(holder) as typeof holder;
  if (clientId === undefined || ownerId === undefined)
    throw new TypeError(
      'the client or the resource owner is undefined; inject @CurrentClient() behind BearerGuard, or ask ClientsService; ' +
        'an ownerId of null means all owners',
    );
  return { ...(clientId !== null && { clientId }), ...(ownerId !== null && { ownerId }) };
}

/** A controller whose routes need a client's access token, and whose errors are problems. */
export const ClientController = (path: string): ClassDecorator =>
  applyDecorators(Controller(path), UsherRoutes(), UseFilters(ProblemFilter), UseGuards(BearerGuard, KNOWN_QUERY));
