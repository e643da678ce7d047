import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import type { Parameters } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { subjectOf } from '../../values/resource-owner.js';
import { AccessToken, EXPIRY_MARGIN_MS, Grant } from './grant.entity.js';
import { tokenOf } from './token-request.js';
import { digestToken, parseToken } from './token.js';
import type { Introspection } from './token.schemas.js';
import { TokenStore } from './store/token.store.js';

const INACTIVE: Introspection = { active: false };

/** A token that is valid. Times in milliseconds since 1970. */
interface Active {
  clientId: string;
  ownerId: string | null;
  createdAt: number;
  expiresAt: number;
}

@Injectable()
export class IntrospectionService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly store: TokenStore,
  ) {}

  /** RFC 7662. A client sees only its own tokens. The internal credential (`null`) sees the tokens of all clients. */
  async introspect(caller: Client | null, parameters: Parameters): Promise<Introspection> {
    const token = tokenOf(parameters, caller?.id ?? this.options.internal?.user ?? '');
    const kind = parseToken(token)?.kind;
    if (kind !== 'access' && kind !== 'refresh') return INACTIVE;
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

  private async findRefreshToken(refreshDigest: string): Promise<Active | null> {
    const { manager } = this.dataSource;
    const grant = await manager.findOneBy(Grant, { refreshDigest });
    if (!grant) return null;
    const expiresAt = await this.promisedExpiry(manager, grant);
    const isActive = expiresAt > (await databaseNow(manager)) && (await isAccepted(manager, grant));
    return isActive ? { ...grant, expiresAt } : null;
  }

  /**
   * The expiry that the last token response promised. Each refresh adds an access token, so the newest one tells when that
   * was. If it has been deleted, the stored expiry less its margin was promised.
   */
  private async promisedExpiry(manager: EntityManager, { id, createdAt, expiresAt }: Grant): Promise<number> {
    const lastRefreshAt = await manager.maximum(AccessToken, 'createdAt', { grantId: id });
    const lastPromise = Number(lastRefreshAt ?? createdAt) + this.options.refreshTokenSeconds * 1_000;
    return Math.max(expiresAt - EXPIRY_MARGIN_MS, Math.min(lastPromise, expiresAt));
  }
}

/** The client is enabled, and its tokens were not revoked since. */
const isAccepted = (manager: EntityManager, { clientId, generation }: Grant): Promise<boolean> =>
  manager.existsBy(Client, { id: clientId, tokenGeneration: generation, disabledAt: IsNull() });
