import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Holder } from '../../auth/bearer/bearer.guard.js';
import { named, PageEnd } from '../../http/operation.js';
import { fieldError, invalidFields, type Problem, wholeNumber } from '../../http/problem.js';
import { OrderView } from '../movie-order.js';
import { ORDER_STATUSES, orderStatuses } from '../movie-order.entity.js';
import { givenMoment, OrderDelivery } from '../../webhooks/webhook-view.js';

const CURSOR = /^(all|pending|completed)\.([0-9a-z]{1,11})\.([0-9a-z]{0,11})\.([0-9a-f]{8})$/;
const BAD_CURSOR = 'must be the nextCursor or resumeCursor of an earlier page of the same list';

export const OrderQuery = z.strictObject({
  status: z.enum(orderStatuses).optional().describe('Only the orders with this status.'),
  completedAfter: givenMoment.optional().describe('Only orders that were completed at this time or later.'),
  cursor: z
    .string()
    .regex(CURSOR, BAD_CURSOR)
    .optional()
    .describe('The `nextCursor` or `resumeCursor` of an earlier page. It contains `status` and `completedAfter`.'),
  limit: wholeNumber(1, 100, (number) => number.default(50)).describe('The number of orders on a page.'),
});
/** Which orders a page has: those after the cursor, or the oldest ones. */
export type OrderQuery = z.input<typeof OrderQuery>;

export const ListedOrder = named(
  'ListedMovieOrder',
  OrderView.extend({
    delivery: OrderDelivery.nullable().describe('The order’s notification. Null before the order is completed.'),
  }),
);
/** An order with the state of its notification. */
export type ListedOrder = z.infer<typeof ListedOrder>;

export const OrderPage = named(
  'MovieOrderPage',
  z.object({
    data: z.array(ListedOrder).describe('Oldest first: by creation, or by completion if they are COMPLETED.'),
    ...PageEnd,
    resumeCursor: z
      .string()
      .describe('Send it as `cursor` for what follows this page, now or later. Every page has one.'),
  }),
);
/** A page of orders, and where the next one begins. */
export type OrderPage = z.infer<typeof OrderPage>;

/** Where a page begins: in which list, behind which position, and from which completion time on. */
export interface PageStart {
  kind: 'all' | 'pending' | 'completed';
  position: number;
  /** In milliseconds since 1970; null: from the beginning. */
  completedAfter: number | null;
}

/** The start that a checked query asks for. 400 for a cursor of another holder or of another list. */
export function pageStart(holder: Holder, query: Omit<OrderQuery, 'limit'>): PageStart {
  const { status, completedAfter, cursor } = query;
  // No order is older than 1970, and a cursor has no negative numbers.
  const since = completedAfter === undefined ? null : Math.max(0, Date.parse(completedAfter));
  const list = status && ORDER_STATUSES[status].list;
  if (list === 'pending' && since !== null)
    throw invalid('completedAfter', 'cannot be used with status=PENDING; leave one of them out');
  const kind = list ?? (since === null ? 'all' : 'completed');
  if (cursor === undefined) return { kind, position: 0, completedAfter: since };
  const start = startOf(holder, cursor);
  const isOther = (status !== undefined && start.kind !== kind) || (since !== null && start.completedAfter !== since);
  if (isOther) throw invalid('cursor', 'belongs to a list with another status or completedAfter; send only the cursor');
  return start;
}

export function cursorOf(holder: Holder, { kind, position, completedAfter }: PageStart): string {
  return [kind, position.toString(36), completedAfter?.toString(36) ?? '', tagOf(holder)].join('.');
}

function startOf(holder: Holder, cursor: string): PageStart {
  const [, kind, position = '', completedAfter = '', tag] = CURSOR.exec(cursor) ?? [];
  if (tag !== tagOf(holder)) throw invalid('cursor', BAD_CURSOR);
  return {
    kind: kind as PageStart['kind'],
    position: Number.parseInt(position, 36),
    completedAfter: completedAfter === '' ? null : Number.parseInt(completedAfter, 36),
  };
}

/** A cursor that is used with another token would silently leave orders out. */
const tagOf = ({ clientId, ownerId }: Holder): string =>
  createHash('sha256')
    .update(`${clientId}\n${ownerId ?? ''}`)
    .digest('hex')
    .slice(0, 8);

export const invalid = (parameter: string, message: string): Problem =>
  invalidFields([fieldError('query', [parameter], message)]);
