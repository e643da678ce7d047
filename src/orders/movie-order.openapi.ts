import { z } from 'zod';
import { TOO_MANY_PENDING } from '../webhooks/pending-limit.js';
import { IdempotencyKeyHeader } from '../http/idempotency-key.js';
import type { Failure, Operation } from '../http/operation.js';
import type { Environment } from '../values/identifier.js';
import { listOperations } from './list/order-list.openapi.js';
import { Completion, NewOrder, OrderView, SandboxCompletion } from './movie-order.js';

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

const UNKNOWN: Failure = { status: 404, detail: `there is no order ${KEY}` };
const OTHER_COMPLETION: Failure = { status: 409, detail: 'the order is already completed with other values' };
const EMPTY_BOOKING: Failure = { status: 400, detail: 'bookingId: must not be empty' };

const path = z.object({ key: z.string().meta({ description: 'The order’s `key`.', example: KEY }) });
const tag = 'Movie orders';

const ORDER_OPERATIONS: Operation[] = [
  {
    id: 'createMovieOrder',
    method: 'post',
    path: '/movie-orders',
    tag,
    summary: 'Create a movie order',
    description: 'When the cinema operator completes the order, Usher sends NOTIFY_ORDER_COMPLETION to its Notify URL.',
    security: ['bearer'],
    parameters: {
      header: z.object({
        'Idempotency-Key': IdempotencyKeyHeader.optional().meta({
          description: 'For 24 hours, a repeated request with the same key gets the order of the first request.',
        }),
      }),
    },
    body: { schema: NewOrder, example: NEW_ORDER },
    answers: { 201: { description: 'The order.', schema: OrderView, example: PENDING } },
    failures: [
      { status: 400, detail: 'currencyCode: must be an ISO 4217 code like MYR' },
      {
        status: 422,
        detail: 'notifyUrl is missing and the client has no Notify URL; send notifyUrl or ask the operator to set one',
      },
      { status: 422, detail: 'this Idempotency-Key was already used for a different request; use a new key' },
      { status: 429, detail: 'too many new orders; create them more slowly' },
      TOO_MANY_PENDING,
    ],
  },
  {
    id: 'getMovieOrder',
    method: 'get',
    path: '/movie-orders/{key}',
    tag,
    summary: 'Get a movie order',
    description: 'An order of another client is answered like one that does not exist.',
    security: ['bearer'],
    parameters: { path },
    answers: { 200: { description: 'The order.', schema: OrderView, example: COMPLETED } },
    failures: [UNKNOWN],
  },
  {
    id: 'completeMovieOrder',
    method: 'post',
    path: '/internal/movie-orders/{key}/complete',
    tag,
    summary: 'Complete an order (for an order service in another process)',
    description: 'Idempotent: a repeated request with equal values gets the same answer.',
    security: ['internal'],
    parameters: { path },
    body: { schema: Completion, example: COMPLETION },
    answers: { 200: { description: 'The order.', schema: OrderView, example: COMPLETED } },
    failures: [EMPTY_BOOKING, UNKNOWN, OTHER_COMPLETION],
  },
];

const SANDBOX_OPERATIONS: Operation[] = [
  {
    id: 'completeSandboxOrder',
    method: 'post',
    path: '/sandbox/movie-orders/{key}/complete',
    tag,
    summary: 'Complete an order as the cinema operator (sandbox only)',
    description:
      'Completes one of the client’s own orders, now or after a delay. Idempotent for equal values: an order has one delayed ' +
      'completion, and a repeated request does not change its delay.',
    security: ['bearer'],
    parameters: { path },
    body: { schema: SandboxCompletion, example: { ...COMPLETION, delay: '30s', twice: true } },
    answers: {
      200: { description: 'The order.', schema: OrderView, example: COMPLETED },
      202: {
        description: 'The order, still PENDING. It is completed after the delay.',
        schema: OrderView,
        example: PENDING,
      },
    },
    failures: [
      EMPTY_BOOKING,
      UNKNOWN,
      OTHER_COMPLETION,
      { status: 409, detail: 'the order will be completed with other values, as an earlier request with a delay said' },
    ],
  },
];

export const orderOperations = (environment: Environment): Operation[] => [
  ...listOperations(COMPLETED),
  ...ORDER_OPERATIONS,
  ...(environment === 'sandbox' ? SANDBOX_OPERATIONS : []),
];
