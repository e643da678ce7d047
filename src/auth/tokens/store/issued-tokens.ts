import type { EntityManager } from 'typeorm';
import { AccessToken, Grant } from '../grant.entity.js';
import { digestToken, parseToken } from '../token.js';

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
