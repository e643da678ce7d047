import { createHash } from 'node:crypto';
import { type EntityManager, type FindOneOptions, LessThanOrEqual } from 'typeorm';
import { insertIfAbsent } from '../database/statements/statement.js';
import { type Problem, unprocessable } from '../http/problem.js';
import { IdempotencyKey, type MovieOrder } from './movie-order.entity.js';
import type { NewOrder } from './movie-order.js';

/** How long a key is remembered: 24 hours. */
export const IDEMPOTENCY_MS = 86_400_000;

/**
 * Stores the key for `order`, or finds the order that already has it: of several concurrent requests one stores it. Whoever
 * stored it creates the order; if that process ends before, the next request with the key does.
 */
export async function claimIdempotencyKey(
  manager: EntityManager,
  key: string,
  order: MovieOrder,
  request: NewOrder,
): Promise<IdempotencyKey> {
  const { clientId, createdAt } = order;
  const id = { clientId, ownerId: order.ownerId ?? '', key };
  const requestDigest = createHash('sha256').update(JSON.stringify(request)).digest('base64url');
  const row = { ...id, requestDigest, orderId: order.id, createdAt };
  if (await insertIfAbsent(manager, IdempotencyKey, row)) return row;
  const claimed = await manager.findOne(IdempotencyKey, { where: id, ...latestIn(manager) });
  // An expired one that another request, or the purge, has deleted since the insert.
  if (!claimed) return claimIdempotencyKey(manager, key, order, request);
  const expiredAt = createdAt - IDEMPOTENCY_MS;
  if (claimed.createdAt <= expiredAt) {
    await manager.delete(IdempotencyKey, { ...id, createdAt: LessThanOrEqual(expiredAt) });
    return claimIdempotencyKey(manager, key, order, request);
  }
  if (claimed.requestDigest !== requestDigest) throw keyUsedElsewhere();
  return claimed;
}

/**
 * Options of a read that finds what an insert was refused for. In a transaction it needs a lock: at REPEATABLE READ MySQL
 * otherwise shows the rows as they were when the transaction began.
 */
export const latestIn = ({ queryRunner }: EntityManager): Pick<FindOneOptions, 'lock'> =>
  queryRunner?.isTransactionActive ? { lock: { mode: 'pessimistic_read' } } : {};

export const keyUsedElsewhere = (): Problem =>
  unprocessable('this Idempotency-Key was already used for a different request; use a new key');
