import { Inject, Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { AuditLog, FailureCounts } from '../../audit/audit.module.js';
import { addressOf, routeOf } from '../../http/exchange.js';
import { CodeExchange } from '../authorize/code-exchange.js';
import type { OAuthRequest } from '../client-authentication/client-authentication.js';
import type { Client, GrantType } from '../../clients/client.entity.js';
import type { Requester } from '../../clients/secrets/client-secrets.js';
import { DatabaseClock } from '../../database/database-clock.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-route.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type Environment, newId } from '../../values/identifier.js';
import { TokenStore } from './store/token.store.js';
import { checkScope, grantTypeOf, requiredText } from './token-request.js';
import type { TokenResponse } from './token.schemas.js';
import { digestToken, generateToken, parseToken } from './token.js';

/** Limits the token requests of each client. Issued and refreshed tokens count together. */
@Injectable()
export class TokenLimit {
  private readonly limiter: Limiter | null;

  constructor(limits: Limits, @Inject(USHER_OPTIONS) { tokenRateLimit }: ResolvedOptions) {
    this.limiter = tokenRateLimit && limits.limiter('tokens', tokenRateLimit);
  }

  /** Counts a request. Throws if it exceeds the limit. */
  count(clientId: string): void {
    const wait = this.limiter?.count(limitKey(clientId)) ?? 0;
    if (wait > 0)
      throw new OAuthError('slow_down', 'too many token requests; reuse the access token until it expires', 429, wait);
  }
}

/** Writes token events to the audit log and counts them in the metrics. */
@Injectable()
export class TokenEvents {
  private readonly issuedTokens: Counter<'endpoint'>;
  private readonly refusedRequests: Counter<'endpoint' | 'error'>;

  constructor(
    private readonly audit: AuditLog,
    private readonly failures: FailureCounts,
    registry: MetricsRegistry,
  ) {
    const registers = [registry];
    this.issuedTokens = new Counter({
      name: 'usher_tokens_issued_total',
      help: 'Access tokens issued, by endpoint.',
      labelNames: ['endpoint'],
      registers,
    });
    this.refusedRequests = new Counter({
      name: 'usher_token_refusals_total',
      help: 'Requests rejected by an OAuth endpoint, by endpoint and OAuth error.',
      labelNames: ['endpoint', 'error'],
      registers,
    });
    for (const endpoint of TOKEN_ENDPOINTS) this.issuedTokens.inc({ endpoint }, 0);
  }

  issued({ client, grant }: TokenSubject): void {
    this.audit.log('token.issued', { client, grant });
    this.issuedTokens.inc({ endpoint: '/auth/token' });
  }

  refreshed({ client, grant }: TokenSubject, endpoint: TokenEndpoint): void {
    this.audit.log('token.refreshed', { client, grant });
    this.issuedTokens.inc({ endpoint });
  }

  refused(request: OAuthRequest, error: string): void {
    const path = routeOf(request);
    this.audit.log('token.refused', {
      client: request.user?.id ?? request.claimedClient ?? null,
      error,
      path,
      address: addressOf(request) ?? 'unknown',
    });
    this.refusedRequests.inc({ endpoint: path ?? '', error });
    if (request.user === undefined && AUTHENTICATION_ERRORS.includes(error))
      this.failures.countClient(request.claimedClient, addressOf(request), error === 'slow_down');
  }
}

/** Issues and refreshes tokens. Every failed check throws an {@link OAuthError}. */
@Injectable()
export class TokenService {
  constructor(
    private readonly store: TokenStore,
    private readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly limit: TokenLimit,
    private readonly events: TokenEvents,
    private readonly codes: CodeExchange,
  ) {}

  /**
   * Specification 4.1. It also refreshes, because standard clients know one token endpoint (RFC 6749 §6). `rememberedSecret`
   * is set if the client was remembered, see {@link Requester}.
   * @throws ClientChanged
   */
  async token(client: Client, parameters: Parameters, rememberedSecret: string | null = null): Promise<TokenResponse> {
    const grantType = this.check(client, parameters, ['client_credentials', 'refresh_token', 'authorization_code']);
    const requester = requesterOf(client, rememberedSecret);
    if (grantType === 'client_credentials') return this.issue(requester);
    if (grantType === 'authorization_code') return this.exchange(requester, parameters);
    return this.renew(requester, parameters, '/auth/token');
  }

  /**
   * Specification 4.2.
   * @throws ClientChanged
   */
  async refresh(
    client: Client,
    parameters: Parameters,
    rememberedSecret: string | null = null,
  ): Promise<TokenResponse> {
    this.check(client, parameters, ['refresh_token']);
    return this.renew(requesterOf(client, rememberedSecret), parameters, '/auth/refresh');
  }

  private check(client: Client, parameters: Parameters, accepted: GrantType[]): GrantType {
    this.limit.count(client.id);
    const grantType = grantTypeOf(parameters, client.id, accepted);
    checkAllowed(client, grantType);
    checkScope(parameters);
    return grantType;
  }

  /** The client-credentials grant. */
  private async issue(requester: Requester): Promise<TokenResponse> {
    const { environment } = this.options;
    const [refreshToken, accessToken] = [generateToken('refresh', environment), generateToken('access', environment)];
    const id = newId(environment, await this.clock.now());
    const digests = { refreshDigest: digestToken(refreshToken), accessDigest: digestToken(accessToken) };
    await this.store.issue({ requester, id, ...digests });
    this.events.issued({ client: requester.clientId, grant: id });
    return this.respond(accessToken, refreshToken);
  }

  /** The authorization-code grant. */
  private async exchange(requester: Requester, parameters: Parameters): Promise<TokenResponse> {
    const { grantId, accessToken, refreshToken } = await this.codes.exchange(requester, parameters);
    this.events.issued({ client: requester.clientId, grant: grantId });
    return this.respond(accessToken, refreshToken);
  }

  /** The refresh token stays valid, so a client can repeat a refresh whose response was lost. */
  private async renew(requester: Requester, parameters: Parameters, endpoint: TokenEndpoint): Promise<TokenResponse> {
    const refreshToken = requiredText(parameters, 'refresh_token');
    const parsed = parseToken(refreshToken);
    if (parsed) this.checkEnvironment(parsed.environment);
    const accessToken = generateToken('access', this.options.environment);
    const digests = { refreshDigest: digestToken(refreshToken), accessDigest: digestToken(accessToken) };
    const grant = parsed?.kind === 'refresh' ? await this.store.refresh({ requester, ...digests }) : null;
    if (grant === null)
      throw new OAuthError(
        'invalid_grant',
        'the refresh token is unknown, expired or revoked; request a new one at POST /auth/token',
      );
    this.events.refreshed({ client: requester.clientId, grant }, endpoint);
    return this.respond(accessToken, refreshToken);
  }

  /** The most common mistake. The environment is readable in the token's prefix, so naming it reveals nothing. */
  private checkEnvironment(environment: Environment): void {
    const { environment: expected } = this.options;
    if (environment === expected) return;
    throw new OAuthError('invalid_grant', `this token is for the ${environment} environment; use a ${expected} token`);
  }

  private respond(accessToken: string, refreshToken: string): TokenResponse {
    return {
      access_token: accessToken,
      expires_in: this.options.accessTokenSeconds,
      refresh_token: refreshToken,
      refresh_token_expires_in: this.options.refreshTokenSeconds,
      token_type: 'Bearer',
    };
  }
}

/** As authenticated: if the client's tokens were revoked since then, the new ones are invalid too. */
const requesterOf = ({ id, tokenGeneration }: Client, rememberedSecret: string | null): Requester => ({
  clientId: id,
  generation: tokenGeneration,
  rememberedSecret,
});

function checkAllowed(client: Client, grantType: GrantType): void {
  if (!client.grantTypes.includes(grantType)) {
    throw new OAuthError('unauthorized_client', `this client is not allowed to use grant_type ${grantType}`);
  }
}

const TOKEN_ENDPOINTS = ['/auth/token', '/auth/refresh'] as const;
type TokenEndpoint = (typeof TOKEN_ENDPOINTS)[number];

interface TokenSubject {
  client: string;
  grant: string;
}

/** The errors of a caller that is not authenticated. */
const AUTHENTICATION_ERRORS = ['invalid_client', 'slow_down'];
