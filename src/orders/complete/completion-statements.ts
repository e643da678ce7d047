import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { nowExpression } from '../../database/sql.js';
import { isOneOf, rowList } from '../../database/statements/row-list.js';
import { entityOf, runStatement, statementFor } from '../../database/statements/statement.js';
import { MovieOrder } from '../movie-order.entity.js';

/** What becomes of an order that another transaction has locked. */
export type IfLocked = 'wait' | 'leave out';

/** Locks orders until the transaction ends, in the order of their ids. `now` is the database's time. */
export async function lockOrders(
  manager: EntityManager,
  ids: string[],
  ifLocked: IfLocked,
): Promise<{ order: MovieOrder; now: number }[]> {
  const { dataSource } = manager;
  // Without the hint MySQL scans a small table instead of using the key, and locks every row it reads.
  const byKey = dataSource.options.type === 'postgres' ? '' : 'FORCE INDEX (PRIMARY)';
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT o.*, ${nowExpression(dataSource)} AS now FROM ${tableOf(dataSource, MovieOrder)} o ${byKey}
      WHERE o.id ${isOneOf(dataSource, parameter, ids)}
      ORDER BY o.id FOR UPDATE ${ifLocked === 'wait' ? '' : 'SKIP LOCKED'}`,
    ifLocked === 'wait' ? 'usher_lock_order' : 'usher_lock_free_orders',
  );
  const { rows } = await runStatement(manager, statement);
  return rows.map((row) => ({ order: entityOf(dataSource, MovieOrder, row), now: Number(row.now) }));
}

const COMPLETED = {
  id: 'text',
  booking_id: 'text',
  transaction_id: 'text',
  qr_code: 'text',
  completed_by: 'text',
  completed_from: 'text',
  last_updated_at: 'bigint',
} as const;

/** Writes what a completion changes. */
export async function updateCompleted(manager: EntityManager, orders: MovieOrder[]): Promise<void> {
  const { dataSource } = manager;
  const table = tableOf(dataSource, MovieOrder);
  const { sql, parameters } = rowList(
    dataSource,
    COMPLETED,
    orders.map((order) => ({
      id: order.id,
      booking_id: order.bookingId,
      transaction_id: order.transactionId,
      qr_code: order.qrCode,
      completed_by: order.completedBy,
      completed_from: order.completedFrom,
      last_updated_at: order.lastUpdatedAt,
    })),
  );
  const changed = Object.keys(COMPLETED).slice(1);
  const text =
    dataSource.options.type === 'postgres'
      ? `UPDATE ${table} o SET status = 'COMPLETED', ${changed.map((name) => `${name} = v.${name}`).join(', ')}
         FROM ${sql} WHERE o.id = v.id`
      : `UPDATE ${sql} STRAIGHT_JOIN ${table} o FORCE INDEX (PRIMARY) ON o.id = v.id
         SET o.status = 'COMPLETED', ${changed.map((name) => `o.${name} = v.${name}`).join(', ')}`;
  await runStatement(manager, { text, parameters, name: 'usher_complete_orders' });
}
