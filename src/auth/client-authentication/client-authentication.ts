import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { DataSource } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { hasCredentials, parseBasicHeader } from '../../http/basic-credentials.js';
import { type HttpRequest, type HttpResponse, rawRequest, setHeaders } from '../../http/exchange.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType } from '../../http/oauth-parameters.js';
import { NO_STORE, OAUTH_ROUTE, type OAuthRouteOptions } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { BasicGuard } from './basic.strategy.js';
import { type Caller, FailureLimit } from './failure-limit.js';

/** The fields that client authentication adds to a request. */
export interface OAuthRequest extends HttpRequest {
  /** The authenticated client. Null if the caller used the internal credential. */
  user?: Client | null;
  /** The client id of a failed authentication, if a client with this id exists. */
  claimedClient?: string;
}

/** The guard of the OAuth routes: limits against guessing, and client authentication (specification 5.2). */
@Injectable()
export class ClientAuthentication implements CanActivate {
  /** Requests that were authenticated before their body was read. */
  private readonly authenticated = new WeakSet<object>();

  constructor(
    private readonly reflector: Reflector,
    private readonly guard: BasicGuard,
    private readonly failures: FailureLimit,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<OAuthRequest>();
    if (this.authenticated.has(rawRequest(request))) return true;
    const route = this.reflector.get<OAuthRouteOptions>(OAUTH_ROUTE, context.getHandler());
    await this.authenticate(request, http.getResponse<HttpResponse>(), route);
    return true;
  }

  /**
   * Stores the client on the request, or throws an {@link OAuthError}. A server calls it before it reads the body; the
   * guard then accepts the request as it is.
   */
  async authenticate(request: OAuthRequest, response: HttpResponse, route: OAuthRouteOptions): Promise<void> {
    setHeaders(response, NO_STORE);
    checkSingleHeader(request);
    const caller = callerOf(request);
    if (caller) await this.failures.check(caller);
    try {
      await this.identify(request, response, route);
    } catch (error) {
      if (caller && isInvalidClient(error)) await this.recordFailure(request, caller);
      throw error;
    }
    checkMediaType(request.headers);
    this.authenticated.add(rawRequest(request));
  }

  private async identify(
    request: OAuthRequest,
    response: HttpResponse,
    { internal }: OAuthRouteOptions,
  ): Promise<void> {
    if (internal && hasCredentials(request.headers.authorization, this.options.internal)) request.user = null;
    else await this.guard.canActivate(new ExecutionContextHost([request, response]));
  }

  /** Only an existing client id goes into the log: any other text may be a secret typed into the wrong field. */
  private async recordFailure(request: OAuthRequest, caller: Caller): Promise<void> {
    const clients = this.dataSource.getRepository(Client);
    const claimed = await clients.findOne({ where: { id: caller.clientId }, select: { id: true } });
    if (claimed) request.claimedClient = claimed.id;
    await this.failures.recordFailure(caller);
  }
}

/** With two Authorization headers it is undefined which one applies, so reject the request. */
function checkSingleHeader(request: OAuthRequest): void {
  const isAuthorization = (name: string, index: number): boolean =>
    index % 2 === 0 && name.toLowerCase() === 'authorization';
  if (rawRequest(request).rawHeaders.filter(isAuthorization).length > 1)
    throw new OAuthError('invalid_request', 'send exactly one Authorization header');
}

/** Uses the decoded client id, so that different encodings of one id count together. Null without credentials. */
function callerOf({ headers, ip }: OAuthRequest): Caller | null {
  const credentials = parseBasicHeader(headers.authorization).at(-1);
  return credentials ? { clientId: credentials.id, address: ip ?? '' } : null;
}

const isInvalidClient = (error: unknown): boolean => error instanceof OAuthError && error.code === 'invalid_client';
