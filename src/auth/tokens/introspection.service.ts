import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import type { Parameters } from '../../http/oauth-parameters.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { findIssuedToken, type IssuedToken } from './issued-tokens.js';
import { checkBodyCredentials, requiredText } from './token-request.js';
import type { Introspection } from './token.schemas.js';

const INACTIVE: Introspection = { active: false };

@Injectable()
export class IntrospectionService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** RFC 7662. A client sees only its own tokens. The internal credential (`null`) sees the tokens of all clients. */
  async introspect(caller: Client | null, parameters: Parameters): Promise<Introspection> {
    checkBodyCredentials(parameters, caller?.id ?? this.options.internal?.user ?? '');
    const token = requiredText(parameters, 'token');
    const { manager } = this.dataSource;
    const found = await findIssuedToken(manager, token);
    if (!found || (caller && found.row.clientId !== caller.id)) return INACTIVE;
    return (await isActive(manager, found)) ? introspectionOf(found) : INACTIVE;
  }
}

async function isActive(manager: EntityManager, { row }: IssuedToken): Promise<boolean> {
  if (row.expiresAt <= (await databaseNow(manager))) return false;
  return manager.existsBy(Client, { id: row.clientId, disabledAt: IsNull() });
}

function introspectionOf({ kind, row }: IssuedToken): Introspection {
  return {
    active: true,
    client_id: row.clientId,
    ...(kind === 'access' && { token_type: 'Bearer' as const }),
    exp: Math.floor(row.expiresAt / 1_000),
    iat: Math.floor(row.createdAt / 1_000),
  };
}
