import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import type { Parameters } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { subjectOf } from '../../values/resource-owner.js';
import { revokeGrants } from '../authorize/connected-applications.js';
import { AccessTokens } from '../bearer/access-tokens.js';
import { AccessToken, EXPIRY_MARGIN_MS, Grant } from './grant.entity.js';
import { TokenStore } from './store/token.store.js';
import { tokenOf } from './token-request.js';
import type { Introspection } from './token.schemas.js';
import { digestToken, parseToken } from './token.js';

const INACTIVE: Introspection = { active: false };

/** Revokes tokens (RFC 7009) and introspects them (RFC 7662). The prefix of a token shows its kind, so token_type_hint is ignored. */
@Injectable()
export class IssuedTokens {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly store: TokenStore,
    private readonly audit: AuditLog,
    private readonly accessTokens: AccessTokens,
  ) {}

  /** Revokes a token of this client, and with a refresh token its access tokens. Ignores any other token. */
  async revoke(client: Client, parameters: Parameters): Promise<void> {
    const token = tokenOf(parameters, client.id);
    const kind = kindOf(token);
    if (kind === null) return;
    const [digest, clientId] = [digestToken(token), client.id];
    const [grant] = await inTransaction(this.dataSource, (manager) =>
      kind === 'access'
        ? revokeAccessToken(manager, digest, clientId)
        : revokeGrants(manager, { refreshDigest: digest, clientId }),
    );
    if (grant === undefined) return;
    if (kind === 'access') this.accessTokens.forget(token);
    else this.accessTokens.forgetGrants([grant]);
    this.audit.log('token.revoked', { client: clientId, kind, grant });
  }

  /** A client sees only its own tokens. The internal credential (`null`) sees the tokens of all clients. */
  async introspect(caller: Client | null, parameters: Parameters): Promise<Introspection> {
    const token = tokenOf(parameters, caller?.id ?? this.options.internal?.user ?? '');
    const kind = kindOf(token);
    if (kind === null) return INACTIVE;
    const digest = digestToken(token);
    const found = await (kind === 'access' ? this.store.find(digest) : this.findRefreshToken(digest));
    if (!found || (caller && found.clientId !== caller.id)) return INACTIVE;
    return {
      active: true,
      client_id: found.clientId,
      ...(found.ownerId !== null && { sub: subjectOf(found.ownerId) }),
      ...(kind === 'access' && { token_type: 'Bearer' as const }),
      exp: Math.floor(found.expiresAt / 1_000),
      iat: Math.floor(found.createdAt / 1_000),
    };
  }

  private async findRefreshToken(refreshDigest: string) {
    const { manager } = this.dataSource;
    const grant = await manager.findOneBy(Grant, { refreshDigest });
    if (!grant) return null;
    const expiresAt = await this.promisedExpiry(manager, grant);
    // The client is enabled, and its tokens were not revoked since.
    const client = { id: grant.clientId, tokenGeneration: grant.generation, disabledAt: IsNull() };
    const isActive = expiresAt > (await databaseNow(manager)) && (await manager.existsBy(Client, client));
    return isActive ? { ...grant, expiresAt } : null;
  }

  /**
   * The expiry that the last token response promised. Each refresh adds an access token, so the newest one shows when that
   * was. If it has been deleted, the promise was the stored expiry minus its margin.
   */
  private async promisedExpiry(manager: EntityManager, { id, createdAt, expiresAt }: Grant): Promise<number> {
    const lastRefreshAt = await manager.maximum(AccessToken, 'createdAt', { grantId: id });
    const lastPromise = Number(lastRefreshAt ?? createdAt) + this.options.refreshTokenSeconds * 1_000;
    return Math.max(expiresAt - EXPIRY_MARGIN_MS, Math.min(lastPromise, expiresAt));
  }
}

/** Null for a code and for text that is no token. */
function kindOf(token: string): 'access' | 'refresh' | null {
  const kind = parseToken(token)?.kind ?? 'code';
  return kind === 'code' ? null : kind;
}

/** Returns the id of its grant; empty if the client has no such token. */
async function revokeAccessToken(manager: EntityManager, digest: string, clientId: string): Promise<string[]> {
  const first = await manager.findOneBy(Grant, { accessDigest: digest, clientId });
  const grantId = first?.id ?? (await manager.findOneBy(AccessToken, { digest, clientId }))?.grantId;
  if (grantId === undefined) return [];
  // In both tables, because the purge of version 0.2.0 moves a grant's first token when it deletes the grant.
  await manager.update(Grant, { accessDigest: digest }, { accessDigest: null });
  await manager.delete(AccessToken, { digest });
  return [grantId];
}
