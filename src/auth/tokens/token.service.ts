import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import type { Client, GrantType } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-parameters.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type Environment, newId } from '../../values/identifier.js';
import { AccessToken, Grant } from './grant.entity.js';
import { lockGrant } from './issued-tokens.js';
import { TokenEvents } from './token-events.js';
import { TokenLimit } from './token-limit.js';
import { checkBodyCredentials, checkGrantType, checkScope, requiredText } from './token-request.js';
import { digestToken, generateToken, parseToken } from './token.js';
import type { TokenResponse } from './token.schemas.js';

const ENDPOINTS: Record<GrantType, string> = {
  client_credentials: 'POST /auth/token',
  refresh_token: 'POST /auth/refresh',
};
/** The stored expiry is up to one hour later than promised, so frequent refreshes update it only once an hour. */
const EXPIRY_MARGIN_MS = 3_600_000;

/** Issues and refreshes tokens. Every failed check throws an {@link OAuthError}. */
@Injectable()
export class TokenService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly limit: TokenLimit,
    private readonly events: TokenEvents,
  ) {}

  /** The client-credentials grant (specification 4.1). */
  async token(client: Client, parameters: Parameters): Promise<TokenResponse> {
    await this.limit.count(client.id);
    checkBodyCredentials(parameters, client.id);
    checkGrantType(parameters, 'client_credentials', ENDPOINTS);
    checkAllowed(client, 'client_credentials');
    checkScope(parameters);
    const { grant, refreshToken, accessToken } = await inTransaction(this.dataSource, async (manager) => {
      const now = await databaseNow(manager);
      const { grant, refreshToken } = await this.issueGrant(manager, client, now);
      return { grant, refreshToken, accessToken: await this.issueAccessToken(manager, grant, now) };
    });
    this.events.issued({ client: client.id, grant: grant.id });
    return this.respond(accessToken, refreshToken);
  }

  /** Specification 4.2. The refresh token stays valid, so a client can repeat a refresh whose response was lost. */
  async refresh(client: Client, parameters: Parameters): Promise<TokenResponse> {
    await this.limit.count(client.id);
    checkBodyCredentials(parameters, client.id);
    checkGrantType(parameters, 'refresh_token', ENDPOINTS);
    checkAllowed(client, 'refresh_token');
    checkScope(parameters);
    const refreshToken = requiredText(parameters, 'refresh_token');
    const { grant, accessToken } = await inTransaction(this.dataSource, async (manager) => {
      const now = await databaseNow(manager);
      const grant = await this.findGrant(manager, client, refreshToken, now);
      await this.extendExpiry(manager, grant, now);
      return { grant, accessToken: await this.issueAccessToken(manager, grant, now) };
    });
    this.events.refreshed({ client: client.id, grant: grant.id });
    return this.respond(accessToken, refreshToken);
  }

  private async issueGrant(manager: EntityManager, client: Client, now: number) {
    const refreshToken = generateToken('refresh', this.options.environment);
    const grant = manager.create(Grant, {
      id: newId(this.options.environment, now),
      clientId: client.id,
      refreshDigest: digestToken(refreshToken),
      createdAt: now,
      expiresAt: now + this.refreshLifetimeMs + EXPIRY_MARGIN_MS,
    });
    await manager.insert(Grant, grant);
    return { grant, refreshToken };
  }

  private async issueAccessToken(manager: EntityManager, grant: Grant, now: number): Promise<string> {
    const accessToken = generateToken('access', this.options.environment);
    await manager.insert(AccessToken, {
      digest: digestToken(accessToken),
      grantId: grant.id,
      clientId: grant.clientId,
      createdAt: now,
      expiresAt: now + this.options.accessTokenSeconds * 1_000,
    });
    return accessToken;
  }

  private async findGrant(manager: EntityManager, client: Client, refreshToken: string, now: number): Promise<Grant> {
    const parsed = parseToken(refreshToken);
    if (parsed) this.checkEnvironment(parsed.environment);
    const grant = parsed?.kind === 'refresh' ? await lockGrant(manager, refreshToken) : null;
    if (!grant || grant.clientId !== client.id || grant.expiresAt <= now) {
      throw new OAuthError(
        'invalid_grant',
        'the refresh token is unknown, expired or revoked; request a new one at POST /auth/token',
      );
    }
    return grant;
  }

  /** The most common mistake. The environment is readable in the token's prefix, so naming it reveals nothing. */
  private checkEnvironment(environment: Environment): void {
    const { environment: expected } = this.options;
    if (environment === expected) return;
    throw new OAuthError('invalid_grant', `this token is for the ${environment} environment; use a ${expected} token`);
  }

  private async extendExpiry(manager: EntityManager, grant: Grant, now: number): Promise<void> {
    const promised = now + this.refreshLifetimeMs;
    if (grant.expiresAt < promised)
      await manager.update(Grant, { id: grant.id }, { expiresAt: promised + EXPIRY_MARGIN_MS });
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

  private get refreshLifetimeMs(): number {
    return this.options.refreshTokenSeconds * 1_000;
  }
}

function checkAllowed(client: Client, grantType: GrantType): void {
  if (!client.grantTypes.includes(grantType)) {
    throw new OAuthError('unauthorized_client', `this client is not allowed to use grant_type ${grantType}`);
  }
}
