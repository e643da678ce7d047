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
import { newId } from '../../values/identifier.js';
import { TokenStore } from './store/token.store.js';
import { checkScope, grantTypeOf, REFRESH_GRANTS, requiredText, TOKEN_GRANTS } from './token-request.js';
import type { TokenResponse } from './token.schemas.js';
import {
  digestToken,
  generateToken,
  type NewTokens,
  newTokens,
  parseToken,
  wrongEnvironment,
  wrongKind,
} from './token.js';

export const tooManyTokenRequests = (waitSeconds: number): OAuthError =>
  new OAuthError('slow_down', 'too many token requests; reuse the access token until it expires', 429, waitSeconds);

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
    for (const endpoint of TOKEN_ENDPOINTS) {
      this.issuedTokens.inc({ endpoint }, 0);
      for (const error of AUTHENTICATION_ERRORS) this.refusedRequests.inc({ endpoint, error }, 0);
    }
  }

  issued(
    event: 'token.issued' | 'token.refreshed',
    subject: { client: string; grant: string },
    endpoint: TokenEndpoint,
  ): void {
    this.audit.log(event, subject);
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
  /** Issued and refreshed tokens of a client count together. */
  private readonly limiter: Limiter | null;

  constructor(
    private readonly store: TokenStore,
    private readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    limits: Limits,
    private readonly events: TokenEvents,
    private readonly codes: CodeExchange,
  ) {
    this.limiter = options.tokenRateLimit && limits.limiter('tokens', options.tokenRateLimit);
  }

  /**
   * Specification 4.1. It also refreshes, because standard clients know one token endpoint (RFC 6749 §6). `rememberedSecret`:
   * see {@link Requester}. `request`: for the audit.
   * @throws ClientChanged
   */
  async token(
    client: Client,
    parameters: Parameters,
    rememberedSecret: string | null = null,
    request: { ip?: string } = {},
  ): Promise<TokenResponse> {
    const grantType = this.check(client, parameters, TOKEN_GRANTS);
    const requester = requesterOf(client, rememberedSecret);
    if (grantType === 'client_credentials') return this.issue(requester);
    if (grantType === 'authorization_code') return this.exchange(requester, parameters, addressOf(request));
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
    this.check(client, parameters, REFRESH_GRANTS);
    return this.renew(requesterOf(client, rememberedSecret), parameters, '/auth/refresh');
  }

  private check(client: Client, parameters: Parameters, accepted: readonly GrantType[]): GrantType {
    if (!Array.isArray(client?.grantTypes))
      throw new TypeError('the client has no grants; inject @CurrentClient() behind BasicGuard, or ask ClientsService');
    const wait = this.limiter?.count(limitKey(client.id)) ?? 0;
    if (wait > 0) throw tooManyTokenRequests(wait);
    const grantType = grantTypeOf(Object(parameters), client.id, accepted);
    checkAllowed(client, grantType);
    checkScope(parameters);
    return grantType;
  }

  private async issue(requester: Requester): Promise<TokenResponse> {
    const { tokens, digests } = newTokens(this.options.environment);
    const id = newId(this.options.environment, await this.clock.now());
    await this.store.issue({ id, ...requester, ...digests });
    this.events.issued('token.issued', { client: requester.clientId, grant: id }, '/auth/token');
    return this.respond(tokens);
  }

  private async exchange(requester: Requester, parameters: Parameters, address: string | null): Promise<TokenResponse> {
    const { grantId, tokens } = await this.codes.exchange(requester, parameters, address);
    this.events.issued('token.issued', { client: requester.clientId, grant: grantId }, '/auth/token');
    return this.respond(tokens);
  }

  /** The refresh token stays valid, so a client can repeat a refresh whose response was lost. */
  private async renew(requester: Requester, parameters: Parameters, endpoint: TokenEndpoint): Promise<TokenResponse> {
    const refreshToken = requiredText(parameters, 'refresh_token');
    const parsed = parseToken(refreshToken);
    const fault = wrongEnvironment(parsed, this.options.environment) ?? wrongKind(parsed, 'refresh');
    if (fault !== null) throw new OAuthError('invalid_grant', fault);
    const accessToken = generateToken('access', this.options.environment);
    const refreshDigest = digestToken(refreshToken);
    const accessDigest = digestToken(accessToken);
    const presented = { refreshDigest, accessDigest, ...requester };
    const grant = parsed && (await this.store.refresh(presented));
    if (grant === null) throw invalidRefreshToken();
    this.events.issued('token.refreshed', { client: requester.clientId, grant }, endpoint);
    return this.respond({ accessToken, refreshToken });
  }

  private respond({ accessToken, refreshToken }: NewTokens): TokenResponse {
    return {
      access_token: accessToken,
      expires_in: this.options.accessTokenSeconds,
      refresh_token: refreshToken,
      refresh_token_expires_in: this.options.refreshTokenSeconds,
      token_type: 'Bearer',
    };
  }
}

/** The generation at the authentication: if tokens were revoked since then, the new ones are invalid too. */
const requesterOf = ({ id, tokenGeneration }: Client, rememberedSecret: string | null): Requester => ({
  clientId: id,
  generation: tokenGeneration,
  rememberedSecret,
});

export const invalidRefreshToken = (): OAuthError =>
  new OAuthError(
    'invalid_grant',
    'the refresh token is unknown, expired or revoked; request a new one at the token endpoint',
  );

export function checkAllowed({ grantTypes }: Pick<Client, 'grantTypes'>, grantType: GrantType): void {
  if (!grantTypes.includes(grantType))
    throw new OAuthError('unauthorized_client', `this client is not allowed to use grant_type ${grantType}`);
}

const TOKEN_ENDPOINTS = ['/auth/token', '/auth/refresh'] as const;
type TokenEndpoint = (typeof TOKEN_ENDPOINTS)[number];

/** The errors of a caller that is not authenticated. */
const AUTHENTICATION_ERRORS = ['invalid_client', 'slow_down'];
