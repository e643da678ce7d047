import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { PassportStrategy } from '@nestjs/passport';
import type { StrategyCreatedStatic } from 'passport';
import { BasicStrategy as PassportBasicStrategy } from 'passport-http';
import type { Client } from '../../clients/client.entity.js';
import { ClientsService } from '../../clients/clients.service.js';
import { type AuthenticatedClient, ClientChanged, ClientSecrets } from '../../clients/secrets/client-secrets.js';
import { type BasicCredentials, hasCredentials, parseBasicHeader, refusalOf } from '../../http/basic-credentials.js';
import {
  addressGroup,
  checkSingleHeaders,
  type HttpRequest,
  type HttpResponse,
  setHeaders,
} from '../../http/exchange.js';
import { problemOf } from '../../http/error-response.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType, NO_STORE, OAUTH_ROUTE, type OAuthRouteOptions } from '../../http/oauth-route.js';
import { type FailureLimit, TOO_MANY_FAILURES } from '../../limits/failure-limit.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** Not `basic`: an embedding application may register its own strategy with that name. */
const STRATEGY_NAME = 'usher-basic';

/**
 * HTTP Basic for API clients (specification 5.2). passport-http is not used to parse the header: it ignores text after
 * a second colon, so it would accept `secret:anything`, and it accepts any scheme that contains "basic".
 * @internal
 */
@Injectable()
export class BasicStrategy extends PassportStrategy(PassportBasicStrategy, STRATEGY_NAME) {
  constructor(private readonly secrets: ClientSecrets) {
    super();
  }

  /**
   * For passport's middleware, such as that of `AuthGuard('usher-basic')` in an application. Usher's own guard does without
   * the middleware, which would keep each request in memory until a full garbage collection: V8 allocates the functions that
   * it assigns to properties in the old space.
   */
  override authenticate({ headers }: { headers: { authorization?: string } }): void {
    // The middleware replaces these actions for each request, so read them before anything asynchronous.
    const { success, fail, error } = this as object as StrategyCreatedStatic;
    this.secrets
      .authenticate(parseBasicHeader(headers.authorization))
      .then((found) => (found ? success(found.client, found) : fail(401)), error);
  }

  /** Required by PassportStrategy. Passport itself does not call it, because authenticate() is overridden. */
  validate(id: string, secret: string): Promise<AuthenticatedClient | null> {
    return this.secrets.authenticate([{ id, secret }]);
  }
}

const IS_AUTHENTICATED = Symbol('authenticated');

export interface OAuthRequest extends HttpRequest {
  /** The authenticated client. Null if the caller used the internal credential. */
  user?: Client | null;
  /** The id of the client's secret; null with the internal credential. */
  secretId?: string | null;
  /** The id of the secret, to be checked again, because the body arrives after the authentication. Null: checked just now. */
  rememberedSecret?: string | null;
  /** The client id of a failed authentication, if a client with this id exists. */
  claimedClient?: string;
  /** Set before the body was read. A symbol, because no other code of an application may set it. */
  [IS_AUTHENTICATED]?: boolean;
}

/** The request of a client that {@link BasicGuard} has authenticated. */
export type ClientRequest = OAuthRequest & { user: Client };

/**
 * Authenticates clients by Basic (specification 5.2), with limits against guessing. Per client id and address: once the limit
 * is reached, no secret is checked. Per address over all client ids: further failures are answered 429, but correct
 * credentials still pass, so that one caller with invented ids cannot lock out the clients behind the same address. Other
 * addresses are never affected.
 */
@Injectable()
export class ClientAuthentication {
  private readonly failuresOfClient: FailureLimit;
  private readonly failuresOfAddress: Limiter;

  constructor(
    limits: Limits,
    private readonly secrets: ClientSecrets,
    private readonly clients: ClientsService,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.failuresOfClient = limits.failureLimit('failures');
    this.failuresOfAddress = limits.addressLimiter('failures-of-address');
  }

  /**
   * Authenticates a request to an OAuth route and stores its client on it, or throws an {@link OAuthError}. A server calls it
   * before it reads the body; afterwards the guard accepts the request as it is.
   */
  async authenticate(request: OAuthRequest, response: HttpResponse, route: OAuthRouteOptions): Promise<void> {
    if (request[IS_AUTHENTICATED]) return;
    setHeaders(response, NO_STORE);
    await this.identify(request, route);
    checkMediaType(request.headers);
    request[IS_AUTHENTICATED] = true;
  }

  /**
   * Authenticates a request to any other route and stores its client on it, or throws a `Problem`. The headers are set here
   * because an embedding application may use its own error filter. `isFresh`: by the database, not by what is remembered.
   */
  async authenticateElsewhere(request: OAuthRequest, response: HttpResponse, isFresh = false): Promise<void> {
    try {
      await this.identify(request, { internal: false }, isFresh);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const problem = problemOf(error);
      setHeaders(response, problem.headers);
      throw problem;
    }
  }

  /** Failures count by the decoded client id, so that different encodings of one id count together. */
  private async identify(request: OAuthRequest, { internal }: OAuthRouteOptions, isFresh = false): Promise<void> {
    checkSingleHeaders(request);
    const credentials = parseBasicHeader(request.headers.authorization);
    const claimedId = credentials.at(-1)?.id;
    if (claimedId === undefined) throw this.refused(request, credentials);
    const check = async (): Promise<Caller | null> =>
      internal && hasCredentials(credentials, this.options.internal)
        ? INTERNAL
        : this.secrets.authenticate(credentials, isFresh);
    const caller = await this.failuresOfClient.run(`${addressGroup(request.ip ?? '')} ${claimedId}`, check, slowDown);
    if (caller === null) throw await this.failed(request, claimedId, credentials);
    request.user = caller.client;
    request.secretId = caller.secretId;
    request.rememberedSecret = isFresh ? null : caller.secretId;
  }

  /** The answer is the same whether the client id exists or not. */
  private async failed(request: OAuthRequest, claimedId: string, credentials: BasicCredentials[]): Promise<OAuthError> {
    // Only an existing client id goes into the log: any other text may be a secret typed into the wrong field.
    const claimed = await this.clients.find(claimedId);
    if (claimed) request.claimedClient = claimed.id;
    return this.refused(request, credentials);
  }

  /** A header that cannot be read counts like a wrong secret. Without the header nothing was tried, so nothing counts. */
  private refused(request: OAuthRequest, credentials: BasicCredentials[]): OAuthError {
    if (!request.headers.authorization) return invalidClient(request, credentials);
    const wait = this.failuresOfAddress.count(limitKey(addressGroup(request.ip ?? '')));
    return wait > 0 ? slowDown(wait) : invalidClient(request, credentials);
  }

  /**
   * Runs the work of an authenticated request. If it throws {@link ClientChanged}, the request is authenticated by the
   * database, even if another request has done so meanwhile, and the work is repeated.
   */
  async withCurrentClient<T>(request: OAuthRequest, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ClientChanged) || !request.user) throw error;
      delete request.user;
      await this.identify(request, { internal: false }, true);
      return work();
    }
  }
}

/** Who is authenticated; `client` is null for the internal credential. */
type Caller = { [Name in keyof AuthenticatedClient]: AuthenticatedClient[Name] | null };

const INTERNAL: Caller = { client: null, secretId: null };

export const invalidClient = (
  { headers }: Pick<OAuthRequest, 'headers'>,
  credentials: BasicCredentials[],
): OAuthError => new OAuthError('invalid_client', refusalOf(headers.authorization, credentials));

export const slowDown = (waitSeconds: number): OAuthError =>
  new OAuthError('slow_down', TOO_MANY_FAILURES, 429, waitSeconds);

/**
 * Requires a client's id and secret by HTTP Basic (specification 5.2), with limits against guessing, and stores the
 * client on the request, for `CurrentClient`. It guards the OAuth routes and any route of an application. Outside the
 * OAuth routes its errors are a `Problem`: 400, 401 with a challenge, or 429 with Retry-After.
 */
@Injectable()
export class BasicGuard implements CanActivate {
  static readonly security = 'basic';

  constructor(
    private readonly reflector: Reflector,
    private readonly clients: ClientAuthentication,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<OAuthRequest>(), http.getResponse<HttpResponse>()];
    const route = this.reflector.get<OAuthRouteOptions | undefined>(OAUTH_ROUTE, context.getHandler());
    if (route) await this.clients.authenticate(request, response, route);
    else await this.clients.authenticateElsewhere(request, response);
    return true;
  }
}
