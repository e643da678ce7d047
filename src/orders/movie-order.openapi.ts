import { z } from 'zod';
import { notifyUrlMissing } from '../clients/clients.service.js';
import { validated } from '../http/problem.js';
import { tooManyPending } from '../webhooks/pending-limit.js';
import { otherCompletion, unknownOrder } from './complete/order-completions.js';
import { keyUsedElsewhere } from './idempotency.js';
import {
  InternalOrdersController,
  MovieOrdersController,
  OrderListController,
  tooManyOrders,
} from './movie-orders.controller.js';
import { otherDelayedCompletion, SandboxOrdersController } from './sandbox/sandbox.module.js';
import { IdempotencyKeyHeader } from '../http/idempotency-key.js';
import { answer, type Failure, type Operation, operations } from '../http/operation.js';
import type { Environment } from '../values/identifier.js';
import { Completion, NewOrder, OrderView, SandboxCompletion } from './movie-order.js';
import { cursorOf, OrderPage, OrderQuery, pageStart } from './list/order-list.schemas.js';
import { dayNotBegun, dayTooOld, DayTotalsView, TotalsQuery } from './list/order-totals.js';

const KEY = 'TW92aWVPcmRlcjpzMGtUM2FWYjlRNHhMMm1OOHBSN2NZ';

const NEW_ORDER: NewOrder = {
  currencyCode: 'MYR',
  totalAmount: 4200,
  bookingAmount: 200,
  payableAmount: 4300,
  notifyUrl: 'https://partner.example/notify',
};
const PENDING: OrderView = {
  key: KEY,
  status: 'PENDING',
  ...NEW_ORDER,
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUpdatedAt: '2026-01-01T00:00:00.000Z',
};
const COMPLETION: Completion = { bookingId: 'BK-1', transactionId: 'TX-1', qrCode: 'QR-1' };
const COMPLETED: OrderView = {
  ...PENDING,
  status: 'COMPLETED',
  ...COMPLETION,
  lastUpdatedAt: '2026-01-01T00:00:05.000Z',
};

const ANSWER = answer('The order.', OrderView, COMPLETED);

const COMPLETION_FAILURES: Failure[] = [
  () => validated(Completion, { ...COMPLETION, bookingId: '' }),
  unknownOrder(KEY),
  otherCompletion(),
];

const path = z.object({ key: z.string().meta({ description: 'The order’s `key`.', example: KEY }) });
const HOLDER = { clientId: 'b8E7BDVoa1df1jDrbYlF', ownerId: null };
const CURSOR = cursorOf(HOLDER, { kind: 'completed', position: 1_767_225_605_000_000, completedAfter: null });

const ORDER_OPERATIONS = [
  ...operations('Movie orders', OrderListController, {
    page: {
      id: 'listMovieOrders',
      summary: 'List movie orders',
      description:
        'Oldest first, with the state of each notification. Continue with `resumeCursor`, even days later: every order appears ' +
        'once, also one that was committed late. With status=COMPLETED or completedAfter the list follows the completions ' +
        'instead, and every completion appears once. With status=PENDING a page can have fewer orders than `limit`, or none, ' +
        'while `hasMore` is true.',
      parameters: { query: OrderQuery },
      answers: {
        200: answer('A page.', OrderPage, {
          data: [
            {
              ...COMPLETED,
              delivery: {
                webhookId: 's0kT3aVb9Rm5Wc7Zp1Qx4L',
                status: 'SUCCESS',
                attemptCount: 1,
                finishedAt: '2026-01-01T00:00:05.412Z',
              },
            },
          ],
          nextCursor: null,
          hasMore: false,
          resumeCursor: CURSOR,
        }),
      },
      failures: [
        () => validated(OrderQuery, { cursor: '7' }, 'query'),
        () => pageStart(HOLDER, { status: 'PENDING', cursor: CURSOR }),
        () => pageStart(HOLDER, { status: 'PENDING', completedAfter: '2026-01-01T00:00:00Z' }),
      ],
    },
    ofDay: {
      id: 'getMovieOrderTotals',
      summary: 'Get the totals of a day',
      description:
        'Counts and sums of the orders that were completed on a day in UTC (by their `lastUpdatedAt`), for each currency, and ' +
        'a digest of their keys. Equal digests prove that you know every order.',
      parameters: { query: TotalsQuery },
      answers: {
        200: answer('The totals.', DayTotalsView, {
          day: '2026-01-01',
          currencies: [
            {
              currencyCode: COMPLETED.currencyCode,
              count: 1,
              payableAmount: COMPLETED.payableAmount,
              keysDigest: '5fbdb1c356674742fce2021868843f3f3d169aa69e2115c63f41372b1cfb59fe',
            },
          ],
        }),
      },
      failures: [
        () => validated(TotalsQuery, { day: 'today' }, 'query'),
        dayNotBegun(),
        dayTooOld(Date.parse('2025-12-31T12:00:00Z')),
      ],
    },
  }),
  ...operations('Movie orders', MovieOrdersController, {
    create: {
      id: 'createMovieOrder',
      summary: 'Create a movie order',
      description:
        'When the cinema operator completes the order, Usher sends NOTIFY_ORDER_COMPLETION to its Notify URL.',
      parameters: {
        header: z.object({
          'Idempotency-Key': IdempotencyKeyHeader.optional().describe(
            'For 24 hours, a repeated request with the same key gets the order of the first request.',
          ),
        }),
      },
      body: { schema: NewOrder, example: NEW_ORDER },
      answers: { 201: answer('The order.', OrderView, PENDING) },
      failures: [
        () => validated(NewOrder, { ...NEW_ORDER, currencyCode: 'XYZ' }),
        notifyUrlMissing(),
        keyUsedElsewhere(),
        tooManyOrders(60),
        tooManyPending(10_000),
      ],
    },
    get: {
      id: 'getMovieOrder',
      summary: 'Get a movie order',
      description: 'Answers 404 for an order that does not exist, and for an order of another client.',
      parameters: { path },
      answers: { 200: ANSWER },
      failures: [unknownOrder(KEY)],
    },
  }),
  ...operations('Movie orders', InternalOrdersController, {
    complete: {
      id: 'completeMovieOrder',
      summary: 'Complete an order (for an order service in another process)',
      description: 'Idempotent: a repeated request with equal values gets the same answer.',
      parameters: { path },
      body: { schema: Completion, example: COMPLETION },
      answers: { 200: ANSWER },
      failures: COMPLETION_FAILURES,
    },
  }),
];

const SANDBOX_OPERATIONS = operations('Movie orders', SandboxOrdersController, {
  complete: {
    id: 'completeSandboxOrder',
    summary: 'Complete an order as the cinema operator (sandbox only)',
    description:
      'Completes one of the client’s own orders, now or after a delay. Idempotent for equal values: an order has one delayed ' +
      'completion, and a repeated request does not change its delay.',
    parameters: { path },
    body: { schema: SandboxCompletion, example: { ...COMPLETION, delay: '30s', twice: true } },
    answers: {
      200: ANSWER,
      202: answer('The order, still PENDING. It is completed after the delay.', OrderView, PENDING),
    },
    failures: [...COMPLETION_FAILURES, otherDelayedCompletion()],
  },
});

export const orderOperations = (environment: Environment): Operation[] => [
  ...ORDER_OPERATIONS,
  ...(environment === 'sandbox' ? SANDBOX_OPERATIONS : []),
];
