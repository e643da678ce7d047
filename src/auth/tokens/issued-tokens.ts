import type { EntityManager } from 'typeorm';
import { AccessToken, Grant } from './grant.entity.js';
import { digestToken, parseToken } from './token.js';

/** A row of a token, whoever's and however old. */
export type IssuedToken = { kind: 'access'; row: AccessToken } | { kind: 'refresh'; row: Grant };

/** Looks a token up by what it says it is, the grant of a refresh token locked if asked; null: unknown, revoked, garbage. */
export async function findIssuedToken(
  manager: EntityManager,
  token: string,
  lock = false,
): Promise<IssuedToken | null> {
  const kind = parseToken(token)?.kind;
  if (kind === 'access') {
    const row = await manager.findOneBy(AccessToken, { digest: digestToken(token) });
    return row && { kind, row };
  }
  if (kind === 'refresh') {
    const row = await (lock ? lockGrant(manager, token) : manager.findOneBy(Grant, byToken(token)));
    return row && { kind, row };
  }
  return null;
}

/**
 * The grant of a refresh token, locked until the transaction ends: a refresh and a revocation at the same moment must
 * not leave an access token behind that nothing revokes.
 */
export function lockGrant(manager: EntityManager, refreshToken: string): Promise<Grant | null> {
  return manager.findOne(Grant, {
    where: byToken(refreshToken),
    lock: { mode: 'pessimistic_write' },
  });
}

const byToken = (refreshToken: string) => ({ refreshDigest: digestToken(refreshToken) });
