import type { Operation } from '../../http/operation.js';
import type { OrderView } from '../movie-order.js';
import { OrderPage, OrderQuery } from './order-list.schemas.js';
import { DayTotalsView, TotalsQuery } from './order-totals.js';

const tag = 'Movie orders';

/** `completed` is an order as another operation shows it. */
export const listOperations = (completed: OrderView): Operation[] => [
  {
    id: 'listMovieOrders',
    method: 'get',
    path: '/movie-orders',
    tag,
    summary: 'List movie orders',
    description:
      'Oldest first, with what became of each notification. Go on with `nextCursor`, also days later: every order appears ' +
      'once, also one that was committed late. With status=COMPLETED or completedAfter the list follows the completions ' +
      'instead, and every completion appears once. With status=PENDING a page can have fewer orders than `limit`, or none, ' +
      'while `hasMore` is true.',
    security: ['bearer'],
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
          nextCursor: 'completed.hs7xsohn28..0f4b1c9e',
          hasMore: false,
        },
      },
    },
    failures: [
      { status: 400, detail: 'cursor: must be the nextCursor of an earlier page of the same list' },
      {
        status: 400,
        detail: 'cursor: belongs to a list with another status or completedAfter; send only the cursor',
      },
      {
        status: 400,
        detail: 'completedAfter: cannot be used with status=PENDING; leave one of them out',
      },
    ],
  },
  {
    id: 'getMovieOrderTotals',
    method: 'get',
    path: '/movie-orders/totals',
    tag,
    summary: 'Get the totals of a day',
    description:
      'Counts and sums of the orders that were completed on a day in UTC (by their `lastUpdatedAt`), for each currency, and ' +
      'a digest of their keys. Equal digests prove that you know every order.',
    security: ['bearer'],
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
      { status: 400, detail: 'day: must be a date like 2026-11-21' },
      { status: 400, detail: 'day: has not begun yet in UTC; use today or an earlier day' },
      {
        status: 400,
        detail: 'day: is so long ago that its orders may be deleted; use a day from 2026-01-01 on',
      },
    ],
  },
];
