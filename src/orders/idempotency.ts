import { createHash } from 'node:crypto';
import { type EntityManager, LessThanOrEqual } from 'typeorm';
import { dialectOf } from '../database/data-source.js';
import { insertRows } from '../database/statements/statement.js';
import { type Problem, unprocessable } from '../http/problem.js';
import { IdempotencyKey, type MovieOrder } from './movie-order.entity.js';
import type { NewOrder } from './movie-order.js';

/** How long a key is remembered: 24 hours. */
export const IDEMPOTENCY_MS = 86_400_000;

/**
 * Stores the key for `order`, or finds the order that already has it, and returns that order's id. It runs in the order's
 * transaction: of several concurrent requests one creates the order and the others wait for it.
 */
export async function claimIdempotencyKey(
  manager: EntityManager,
  key: string,
  order: MovieOrder,
  request: NewOrder,
): Promise<string> {
  const { clientId, createdAt } = order;
  const ownerId = order.ownerId ?? '';
  await manager.delete(IdempotencyKey, {
    clientId,
    ownerId,
    key,
    createdAt: LessThanOrEqual(createdAt - IDEMPOTENCY_MS),
  });
  const requestDigest = createHash('sha256').update(JSON.stringify(request)).digest('base64url');
  const row = { clientId, ownerId, key, requestDigest, orderId: order.id, createdAt };
  // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const onConflict = dialectOf(manager).upsert(['client_id', 'owner_id', 'idempotency_key'], ['client_id']);
  await insertRows(manager, IdempotencyKey, [row], onConflict);
  const claimed = await manager.findOneByOrFail(IdempotencyKey, { clientId, ownerId, key });
  if (claimed.requestDigest !== requestDigest) throw keyUsedElsewhere();
  return claimed.orderId;
}

export const keyUsedElsewhere = (): Problem =>
  unprocessable('this Idempotency-Key was already used for a different request; use a new key');
