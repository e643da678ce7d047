import type { EntityManager } from 'typeorm';
import { tableOf } from '../database/data-source.js';
import { nowExpression } from '../database/sql.js';
import { entityOf, runStatement, statementFor } from '../database/statements/statement.js';
import { notFound, type Problem } from '../http/problem.js';
import { orderIdOf } from '../values/identifier.js';
import { MovieOrder } from './movie-order.entity.js';

/** Locks an order until the transaction ends. `now` is the database's time. 404 if there is none with this key. */
export async function lockOrder(manager: EntityManager, key: string): Promise<{ order: MovieOrder; now: number }> {
  const { dataSource } = manager;
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT o.*, ${nowExpression(dataSource)} AS now FROM ${tableOf(dataSource, MovieOrder)} o
      WHERE o.id = ${parameter(orderIdOf(key) ?? '')} FOR UPDATE`,
    'usher_lock_order',
  );
  const [row] = (await runStatement(manager, statement)).rows;
  if (!row) throw unknownOrder(key);
  return { order: entityOf(dataSource, MovieOrder, row), now: Number(row.now) };
}

/** Writes what a completion changes. */
export async function updateCompleted(manager: EntityManager, order: MovieOrder): Promise<void> {
  const { dataSource } = manager;
  const statement = statementFor(
    dataSource,
    (parameter) => `
      UPDATE ${tableOf(dataSource, MovieOrder)}
      SET status = ${parameter(order.status)}, booking_id = ${parameter(order.bookingId)},
        transaction_id = ${parameter(order.transactionId)}, qr_code = ${parameter(order.qrCode)},
        completed_by = ${parameter(order.completedBy)}, completed_from = ${parameter(order.completedFrom)},
        last_updated_at = ${parameter(order.lastUpdatedAt)}
      WHERE id = ${parameter(order.id)}`,
    'usher_complete_order',
  );
  await runStatement(manager, statement);
}

export const unknownOrder = (key: string): Problem => notFound(`there is no order ${key.slice(0, 64)}`);
