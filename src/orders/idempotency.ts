import { createHash } from 'node:crypto';
import { type EntityManager, LessThanOrEqual } from 'typeorm';
import { Problem, unprocessable } from '../http/problem.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import type { MovieOrder } from './movie-order.entity.js';
import { IdempotencyKeyHeader, type NewOrder } from './movie-order.js';

/** So long a key stands for its first request. */
export const IDEMPOTENCY_MS = 86_400_000;

/** Printable ASCII, so that no collation takes two keys for one. */
export function checkIdempotencyKey(key: string): string {
  const { error } = IdempotencyKeyHeader.safeParse(key);
  if (!error) return key;
  const message = error.issues.map((issue) => issue.message).join('; ');
  throw new Problem(400, 'Bad Request', `Idempotency-Key ${message}`, [{ field: 'Idempotency-Key', message }]);
}

/**
 * Takes the key for `order`, or finds the order that took it before: answers with that order's id. In the order's own
 * transaction, so that of several requests at once one makes the order and the others wait for it.
 */
export async function takeIdempotencyKey(
  manager: EntityManager,
  key: string,
  order: MovieOrder,
  request: NewOrder,
): Promise<string> {
  const { clientId, createdAt } = order;
  await manager.delete(IdempotencyKey, { clientId, key, createdAt: LessThanOrEqual(createdAt - IDEMPOTENCY_MS) });
  const requestDigest = createHash('sha256').update(JSON.stringify(request)).digest('base64url');
  await manager
    .createQueryBuilder()
    .insert()
    .into(IdempotencyKey)
    .values({ clientId, key, requestDigest, orderId: order.id, createdAt })
    // Changes nothing: it makes the loser of a race wait for the winner and then see it.
    .orUpdate(['client_id'], ['client_id', 'idempotency_key'])
    .updateEntity(false)
    .execute();
  const taken = await manager.findOneByOrFail(IdempotencyKey, { clientId, key });
  if (taken.requestDigest !== requestDigest) throw unprocessable('this Idempotency-Key was used for another request');
  return taken.orderId;
}
