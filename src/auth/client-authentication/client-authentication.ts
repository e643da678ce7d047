import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { ClientSecrets } from '../../clients/secrets/client-secrets.js';
import { ClientChanged } from '../../clients/secrets/remembered-clients.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type BasicCredentials, hasCredentials, parseBasicHeader } from '../../http/basic-credentials.js';
import { problemOf } from '../../http/error-response.js';
import { countHeader, type HttpRequest, type HttpResponse, rawRequest, setHeaders } from '../../http/exchange.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType } from '../../http/oauth-parameters.js';
import { NO_STORE, type OAuthRouteOptions } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { BasicStrategy } from './basic.strategy.js';
import { type Caller, ClientFailures } from './client-failures.js';

/** The fields that client authentication adds to a request. */
export interface OAuthRequest extends HttpRequest {
  /** The authenticated client. Null if the caller used the internal credential. */
  user?: Client | null;
  /** See {@link AuthenticatedClient}. */
  rememberedSecret?: string | null;
  /** The client id of a failed authentication, if a client with this id exists. */
  claimedClient?: string;
}

/** Authenticates clients by Basic (specification 5.2), with limits against guessing. */
@Injectable()
export class ClientAuthentication {
  /** Requests that were authenticated before their body was read. */
  private readonly authenticated = new WeakSet<object>();

  constructor(
    private readonly strategy: BasicStrategy,
    private readonly failures: ClientFailures,
    private readonly secrets: ClientSecrets,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Stores the client of a request to an OAuth route on it, or throws an {@link OAuthError}. A server calls it before it
   * reads the body; afterwards the guard accepts the request as it is.
   */
  async authenticate(request: OAuthRequest, response: HttpResponse, route: OAuthRouteOptions): Promise<void> {
    if (this.authenticated.has(rawRequest(request))) return;
    setHeaders(response, NO_STORE);
    await this.identifyWithLimits(request, route);
    checkMediaType(request.headers);
    this.authenticated.add(rawRequest(request));
  }

  /**
   * Stores the client of a request to any other route on it, or throws a `Problem`. The headers are set here because
   * an embedding application may use its own error filter.
   */
  async authenticateElsewhere(request: OAuthRequest, response: HttpResponse): Promise<void> {
    try {
      await this.identifyWithLimits(request, { internal: false });
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const problem = problemOf(error);
      setHeaders(response, problem.headers);
      throw problem;
    }
  }

  private async identifyWithLimits(request: OAuthRequest, route: OAuthRouteOptions): Promise<void> {
    checkSingleHeader(request);
    const credentials = parseBasicHeader(request.headers.authorization);
    // The decoded client id, so that different encodings of one id count together.
    const claimed = credentials.at(-1);
    const caller = claimed ? { clientId: claimed.id, address: request.ip ?? '' } : null;
    const identify = () => this.identify(request, credentials, route, caller);
    await (caller ? this.failures.limit(caller, identify) : identify());
  }

  /**
   * Runs the work of an authenticated request. If it finds that the remembered client has changed, the request is
   * authenticated by the database, and the work is repeated.
   */
  async withCurrentClient<T>(request: OAuthRequest, response: HttpResponse, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ClientChanged) || !request.user) throw error;
      this.secrets.forget(request.user.id);
      delete request.user;
      this.authenticated.delete(rawRequest(request));
      await this.authenticate(request, response, { internal: false });
      return work();
    }
  }

  private async identify(
    request: OAuthRequest,
    credentials: BasicCredentials[],
    { internal }: OAuthRouteOptions,
    caller: Caller | null,
  ): Promise<void> {
    if (internal && hasCredentials(credentials, this.options.internal)) {
      request.user = null;
      return;
    }
    const found = await this.strategy.identify(credentials);
    if (!found) {
      if (caller) await this.noteClaimedClient(request, caller);
      throw new OAuthError('invalid_client', refusalOf(request.headers.authorization, credentials));
    }
    request.user = found.client;
    request.rememberedSecret = found.rememberedSecret;
  }

  /** Only an existing client id goes into the log: any other text may be a secret typed into the wrong field. */
  private async noteClaimedClient(request: OAuthRequest, { clientId }: Caller): Promise<void> {
    const clients = this.dataSource.getRepository(Client);
    const claimed = await clients.findOne({ where: { id: clientId }, select: { id: true } });
    if (claimed) request.claimedClient = claimed.id;
  }
}

/** With two Authorization headers it is undefined which one applies, so reject the request. */
function checkSingleHeader(request: OAuthRequest): void {
  if (countHeader(rawRequest(request), 'authorization') > 1)
    throw new OAuthError('invalid_request', 'send exactly one Authorization header');
}

const HOW = 'send Authorization: Basic <BASE64(client_id:client_secret)>, with curl: -u client_id:client_secret';

/** Says how to send credentials if there are none. It reveals nothing: it depends on the request alone. */
function refusalOf(header: string | undefined, credentials: BasicCredentials[]): string {
  if (header === undefined) return `the client credentials are missing; ${HOW}`;
  if (/^bearer\b/i.test(header)) return `this path takes the client id and secret, not a token; ${HOW}`;
  if (credentials.length === 0) return `the Authorization header has no client id and secret; ${HOW}`;
  return 'the client id or the client secret is invalid';
}
