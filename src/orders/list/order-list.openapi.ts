import { operation, type Operation } from '../../http/operation.js';
import { validated } from '../../http/problem.js';
import type { OrderView } from '../movie-order.js';
import { OrderListController } from '../movie-orders.controller.js';
import { cursorOf, OrderPage, OrderQuery, pageStart } from './order-list.schemas.js';
import { dayNotBegun, dayTooOld, DayTotalsView, TotalsQuery } from './order-totals.js';

const tag = 'Movie orders';
const HOLDER = { clientId: 'b8E7BDVoa1df1jDrbYlF', ownerId: null };
const CURSOR = cursorOf(HOLDER, { kind: 'completed', position: 1_767_225_605_000_000, completedAfter: null });

/** `completed` is an order as another operation shows it. */
export const listOperations = (completed: OrderView): Operation[] => [
  operation(OrderListController, 'page', {
    id: 'listMovieOrders',
    tag,
    summary: 'List movie orders',
    description:
      'Oldest first, with what became of each notification. Go on with `nextCursor`, also days later: every order appears ' +
      'once, also one that was committed late. With status=COMPLETED or completedAfter the list follows the completions ' +
      'instead, and every completion appears once. With status=PENDING a page can have fewer orders than `limit`, or none, ' +
      'while `hasMore` is true.',
    parameters: { query: OrderQuery },
    answers: {
      200: {
        description: 'A page.',
        schema: OrderPage,
        example: {
          data: [
            {
              ...completed,
              delivery: {
                webhookId: 's0kT3aVb9Rm5Wc7Zp1Qx4L',
                status: 'SUCCESS',
                attempts: 1,
                finishedAt: '2026-01-01T00:00:05.412Z',
              },
            },
          ],
          nextCursor: CURSOR,
          hasMore: false,
        },
      },
    },
    failures: [
      () => validated(OrderQuery, { cursor: '7' }, 'query'),
      () => pageStart(HOLDER, { status: 'PENDING', cursor: CURSOR }),
      () => pageStart(HOLDER, { status: 'PENDING', completedAfter: '2026-01-01T00:00:00Z' }),
    ],
  }),
  operation(OrderListController, 'ofDay', {
    id: 'getMovieOrderTotals',
    tag,
    summary: 'Get the totals of a day',
    description:
      'Counts and sums of the orders that were completed on a day in UTC (by their `lastUpdatedAt`), for each currency, and ' +
      'a digest of their keys. Equal digests prove that you know every order.',
    parameters: { query: TotalsQuery },
    answers: {
      200: {
        description: 'The totals.',
        schema: DayTotalsView,
        example: {
          day: '2026-01-01',
          currencies: [
            {
              currencyCode: completed.currencyCode,
              count: 1,
              payableAmount: completed.payableAmount,
              keysDigest: '5fbdb1c356674742fce2021868843f3f3d169aa69e2115c63f41372b1cfb59fe',
            },
          ],
        },
      },
    },
    failures: [
      () => validated(TotalsQuery, { day: 'today' }, 'query'),
      dayNotBegun(),
      dayTooOld(Date.parse('2025-12-31T12:00:00Z')),
    ],
  }),
];
