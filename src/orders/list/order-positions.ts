import type { DataSource, EntityManager } from 'typeorm';
import type { Holder } from '../../auth/bearer/bearer.guard.js';
import { dataSourceOf, dialectOf, tableOf } from '../../database/data-source.js';
import { insertRows, runSql } from '../../database/statements/statement.js';
import { inTransaction } from '../../database/sql.js';
import { MovieOrder, OrderCounter } from '../movie-order.entity.js';

/** A list of orders: the column with the positions, and the time and order by which orders without one are placed. */
export interface PositionedList {
  position: 'list_position' | 'completion_position';
  counter: 'listPosition' | 'completionPosition';
  time: 'created_at' | 'last_updated_at';
  order: string;
  /** Which orders it has, as SQL. */
  condition: string;
  index: string;
}

export const ALL_ORDERS: PositionedList = {
  position: 'list_position',
  counter: 'listPosition',
  time: 'created_at',
  // Ids sort by the time of creation, and the index has them in order.
  order: 'id',
  condition: '1 = 1',
  index: 'usher_movie_order_list',
};
export const COMPLETED_ORDERS: PositionedList = {
  position: 'completion_position',
  counter: 'completionPosition',
  time: 'last_updated_at',
  order: 'last_updated_at, id',
  condition: "status = 'COMPLETED'",
  index: 'usher_movie_order_completions',
};

/** Which orders a reader wants: those of the holder, from this time on. */
export interface Wanted {
  holder: Holder;
  list: PositionedList;
  /** In milliseconds since 1970. */
  since: number;
}

export const PLACED_AT_ONCE = 500;

/** How many positions a millisecond has. Positions stay below 2^53 until the year 2255. */
const PER_MS = 1_000;

/** The smallest position that an order of this time can have. */
export const positionAt = (ms: number): number => ms * PER_MS;

/**
 * Gives positions to committed orders that have none, the oldest first, and returns to how many. An order that is committed
 * later gets a larger position than every order that a reader has seen before.
 */
export async function placeOrders(dataSource: DataSource, wanted: Wanted): Promise<number> {
  if ((await unplaced(dataSource, wanted, 1)).length === 0) return 0;
  return inTransaction(dataSource, async (manager) => {
    const last = await lockCounter(manager, wanted);
    const orders = await unplaced(manager, wanted, PLACED_AT_ONCE, 'FOR UPDATE SKIP LOCKED');
    if (orders.length === 0) return 0;
    await storePositions(manager, wanted, last, orders);
    return orders.length;
  });
}

interface Unplaced {
  id: string;
  at: number;
}

/** An order whose transaction goes on is locked. It is left for the next reader, so that no reader waits for it. */
async function unplaced(
  on: DataSource | EntityManager,
  { holder, list, since }: Wanted,
  most: number,
  lock = '',
): Promise<Unplaced[]> {
  const dataSource = dataSourceOf(on);
  const { rows } = await runSql(
    on,
    (parameter) => `
      SELECT id, ${list.time} AS at FROM ${tableOf(dataSource, MovieOrder)} ${byIndex(dataSource, holder, list)}
      WHERE ${ofHolder(holder, parameter)} AND ${list.condition} AND ${list.position} IS NULL
        ${since === 0 ? '' : `AND ${list.time} >= ${parameter(since)}`}
      ORDER BY ${list.order} LIMIT ${most} ${lock}`,
  );
  return rows.map(({ id, at }) => ({ id: String(id), at: Number(at) }));
}

export function ofHolder({ clientId, ownerId }: Holder, parameter: (value: unknown) => string): string {
  const ofClient = `client_id = ${parameter(clientId)}`;
  return ownerId === null ? ofClient : `${ofClient} AND owner_id = ${parameter(ownerId)}`;
}

export const byIndex = (dataSource: DataSource, { ownerId }: Holder, { index }: PositionedList): string =>
  dialectOf(dataSource).byIndex(ownerId === null ? index : 'usher_movie_order_owner');

/** Returns the last position, and makes other readers of this client's lists wait until the transaction ends. */
async function lockCounter(manager: EntityManager, { holder: { clientId }, list }: Wanted): Promise<number> {
  const read = (): Promise<OrderCounter | null> =>
    manager.findOne(OrderCounter, { where: { clientId }, lock: { mode: 'pessimistic_write' } });
  let counter = await read();
  if (!counter) {
    // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
    const onConflict = dialectOf(manager).upsert(['client_id'], ['client_id']);
    await insertRows(manager, OrderCounter, [{ clientId, listPosition: 0, completionPosition: 0 }], onConflict);
    counter = await read();
  }
  return counter?.[list.counter] ?? 0;
}

/** A position contains its time, so the index of positions finds where a list of a given time begins. */
async function storePositions(manager: EntityManager, { holder, list }: Wanted, last: number, orders: Unplaced[]) {
  let place = last;
  const placed = orders.map(({ id, at }) => {
    place = Math.max(place + 1, positionAt(at));
    return { id, place };
  });
  const columns = { id: 'text', place: 'bigint' } as const;
  const changes = { [list.position]: 'v.place' };
  const table = tableOf(manager, MovieOrder);
  await runSql(manager, (parameter) => dialectOf(manager).update(parameter, table, columns, placed, changes));
  await manager.update(OrderCounter, { clientId: holder.clientId }, { [list.counter]: place });
}
