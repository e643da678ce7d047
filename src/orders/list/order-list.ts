import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { heldBy, type Holder } from '../../auth/bearer/bearer.guard.js';
import { tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { entityOf, type Row, runSql } from '../../database/statements/statement.js';
import { validated } from '../../http/problem.js';
import { orderKey } from '../../values/identifier.js';
import { findDeliveries } from '../../webhooks/webhook-queries.js';
import { MovieOrder, ORDER_STATUSES } from '../movie-order.entity.js';
import { viewOf } from '../movie-order.js';
import {
  cursorOf,
  type ListedOrder,
  type OrderPage,
  OrderQuery,
  type PageStart,
  pageStart,
} from './order-list.schemas.js';
import {
  ALL_ORDERS,
  byIndex,
  COMPLETED_ORDERS,
  ofHolder,
  placeOrders,
  PLACED_AT_ONCE,
  positionAt,
  type Wanted,
} from './order-positions.js';

/** How many orders one page of PENDING orders looks at. Most of those may be completed. */
const EXAMINED_AT_ONCE = 5_000;

interface Reading extends Wanted {
  start: PageStart;
  most: number;
}

interface Part {
  rows: Row[];
  /** The last position that was examined, for PENDING orders; else null. */
  until: number | null;
  mayHaveMore: boolean;
}

/**
 * Lists orders so that a reader who continues from a cursor gets each of them once, also those that are committed late.
 * Orders get their position in the list when it is read, see order-positions.ts.
 */
@Injectable()
export class OrderList {
  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  /**
   * A page of orders, the oldest first, with the state of their notifications. `query` is an {@link OrderQuery}; 400 if it is
   * invalid. With `status: 'COMPLETED'` or `completedAfter` the list follows the completions: each one appears once.
   */
  async page(holder: Holder, query: unknown = {}): Promise<OrderPage> {
    // Refuses an undefined client or owner: the answer would be empty.
    heldBy(holder);
    const { limit, ...checked } = validated(OrderQuery, query, 'query');
    const start = pageStart(holder, checked);
    const list = start.kind === 'completed' ? COMPLETED_ORDERS : ALL_ORDERS;
    const since = start.completedAfter ?? 0;
    const { rows, until, mayHaveMore } = await this.read({ holder, list, since, start, most: limit + 1 });
    const shown = rows.slice(0, limit);
    const isFull = rows.length > limit;
    const hasMore = isFull || mayHaveMore;
    const last = isFull ? null : until;
    const position = last ?? Number(shown.at(-1)?.[list.position] ?? start.position);
    const resumeCursor = cursorOf(holder, { ...start, position });
    return {
      data: await this.viewsOf(holder, shown),
      nextCursor: hasMore ? resumeCursor : null,
      hasMore,
      resumeCursor,
    };
  }

  /** Reads orders that have a position. If they are too few, it gives positions to others and reads again. */
  private async read(reading: Reading): Promise<Part> {
    const first = await this.placed(reading);
    if (first.rows.length === reading.most || first.mayHaveMore) return first;
    const placed = await placeOrders(this.dataSource, reading);
    if (placed === 0) return first;
    const second = await this.placed(reading);
    const isPart = reading.start.kind === 'pending' && placed === PLACED_AT_ONCE;
    return { ...second, mayHaveMore: second.mayHaveMore || isPart };
  }

  private async placed(reading: Reading): Promise<Part> {
    const isPending = reading.start.kind === 'pending';
    const part = isPending ? await this.examined(reading) : { until: null, mayHaveMore: false };
    return { ...part, rows: await this.select(reading, part.until) };
  }

  /** PENDING orders have no index of their own, so a page looks at no more than {@link EXAMINED_AT_ONCE} orders. */
  private async examined({ holder, start }: Reading): Promise<Omit<Part, 'rows'>> {
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT COUNT(*) AS examined, MAX(list_position) AS until_position FROM (
          SELECT list_position FROM ${this.table} ${byIndex(this.dataSource, holder, ALL_ORDERS)}
          WHERE ${ofHolder(holder, parameter)} AND list_position > ${parameter(start.position)}
          ORDER BY list_position LIMIT ${EXAMINED_AT_ONCE}) AS part`,
    );
    const { examined, until_position: until = null } = rows[0] ?? {};
    return { until: until === null ? null : Number(until), mayHaveMore: Number(examined) === EXAMINED_AT_ONCE };
  }

  private async select({ holder, list, since, start, most }: Reading, until: number | null): Promise<Row[]> {
    const isPending = start.kind === 'pending';
    // An order's position is never smaller than its time, so the index is read from that time on.
    const after = Math.max(start.position, positionAt(since) - 1);
    const { rows } = await runSql(this.dataSource, (parameter) => {
      const conditions = [
        ofHolder(holder, parameter),
        list.condition,
        `${list.position} > ${parameter(after)}`,
        ...(since === 0 ? [] : [`last_updated_at >= ${parameter(since)}`]),
        ...(until === null ? [] : [`list_position <= ${parameter(until)}`]),
      ];
      // The inner query needs only the index. If it read the rows too, MySQL would read all index entries of the client.
      return `
        SELECT o.* FROM (
          SELECT id FROM ${this.table} ${byIndex(this.dataSource, holder, list)} WHERE ${conditions.join(' AND ')}
          ORDER BY ${list.position} LIMIT ${isPending ? EXAMINED_AT_ONCE : most}) part
        JOIN ${this.table} o ON o.id = part.id ${isPending ? "WHERE o.status = 'PENDING'" : ''}
        ORDER BY o.${list.position} LIMIT ${most}`;
    });
    return rows;
  }

  private get table(): string {
    return tableOf(this.dataSource, MovieOrder);
  }

  private async viewsOf({ clientId }: Holder, rows: Row[]): Promise<ListedOrder[]> {
    const orders = rows.map((row) => entityOf(this.dataSource, MovieOrder, row));
    const notified = orders.filter(({ status }) => ORDER_STATUSES[status].isNotified).map(({ id }) => orderKey(id));
    const deliveries = await findDeliveries(this.dataSource, clientId, notified);
    return orders.map((order) =>
      Object.assign(viewOf(order), { delivery: deliveries.get(orderKey(order.id)) ?? null }),
    );
  }
}
