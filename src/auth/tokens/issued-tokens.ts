import type { EntityManager } from 'typeorm';
import { AccessToken, Grant } from './grant.entity.js';
import { digestToken, parseToken } from './token.js';

/** The row of a token. It may belong to any client and may have expired. */
export type IssuedToken = { kind: 'access'; row: AccessToken } | { kind: 'refresh'; row: Grant };

/** Finds the row of a token; with `lock`, locks the grant of a refresh token. Null: unknown, revoked or malformed. */
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
 * Finds the grant of a refresh token and locks it until the transaction ends. Without the lock, a refresh concurrent
 * with a revocation could leave a valid access token behind.
 */
export function lockGrant(manager: EntityManager, refreshToken: string): Promise<Grant | null> {
  return manager.findOne(Grant, {
    where: byToken(refreshToken),
    lock: { mode: 'pessimistic_write' },
  });
}

const byToken = (refreshToken: string) => ({ refreshDigest: digestToken(refreshToken) });
