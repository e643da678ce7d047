import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import type { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import type { Parameters } from '../../http/oauth-route.js';
import { AccessTokens } from '../bearer/access-tokens.js';
import { AccessToken, Grant } from './grant.entity.js';
import { tokenOf } from './token-request.js';
import { digestToken, parseToken } from './token.js';

/** Token revocation (RFC 7009). The prefix of a token shows its kind, so token_type_hint is ignored. */
@Injectable()
export class RevocationService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    private readonly accessTokens: AccessTokens,
  ) {}

  /** Revokes a token of this client, and with a refresh token its access tokens. Ignores any other token. */
  async revoke(client: Client, parameters: Parameters): Promise<void> {
    const token = tokenOf(parameters, client.id);
    const revoked = await inTransaction(this.dataSource, async (manager) => {
      const found = await lockIssuedToken(manager, token);
      const own = found?.clientId === client.id ? found : null;
      if (own) await remove(manager, own);
      return own;
    });
    if (!revoked) return;
    if (revoked.kind === 'access') this.accessTokens.forget(token);
    else this.accessTokens.forgetGrant(revoked.grantId);
    this.audit.log('token.revoked', { client: client.id, kind: revoked.kind, grant: revoked.grantId });
  }
}

async function remove(manager: EntityManager, { kind, digest, grantId }: IssuedToken): Promise<void> {
  if (kind === 'access') {
    await manager.update(Grant, { accessDigest: digest }, { accessDigest: null });
    await manager.delete(AccessToken, { digest });
    return;
  }
  await manager.delete(AccessToken, { grantId });
  await manager.delete(Grant, { id: grantId });
}

/** A token with its grant. It may belong to any client and may have expired. */
export interface IssuedToken {
  kind: 'access' | 'refresh';
  digest: string;
  grantId: string;
  clientId: string;
}

/**
 * Finds the row of a token, and locks the grant of a refresh token until the transaction ends: without the lock, a refresh
 * concurrent with a revocation could leave a valid access token behind. Null: unknown, revoked or malformed.
 */
export async function lockIssuedToken(manager: EntityManager, token: string): Promise<IssuedToken | null> {
  const kind = parseToken(token)?.kind;
  if (kind !== 'access' && kind !== 'refresh') return null;
  const digest = digestToken(token);
  if (kind === 'refresh') {
    const grant = await manager.findOne(Grant, {
      where: { refreshDigest: digest },
      lock: { mode: 'pessimistic_write' },
    });
    return grant && { kind, digest, grantId: grant.id, clientId: grant.clientId };
  }
  const first = await manager.findOneBy(Grant, { accessDigest: digest });
  if (first) return { kind, digest, grantId: first.id, clientId: first.clientId };
  const row = await manager.findOneBy(AccessToken, { digest });
  return row && { kind, digest, grantId: row.grantId, clientId: row.clientId };
}
