import { z } from 'zod';
import { tooManyPerMinute } from '../../http/minute-limit.js';
import { answer, NOT_STORED, operations } from '../../http/operation.js';
import { validated } from '../../http/problem.js';
import { noSecret } from '../deliver/signing.js';
import { checkedRequest, ResendRequest, ResendView } from './resend.schemas.js';
import { RESEND_LIMIT, UndeliveredController } from './undelivered.controller.js';
import { unknownResend } from './webhook-resends.js';
import { type UndeliveredNotification, UndeliveredPage, UndeliveredQuery } from './undelivered-webhooks.js';

const ID = 's0kT6dYe2Up8Zf0Cs4Ta7O';
const STARTED: ResendView = {
  id: ID,
  state: 'RUNNING',
  status: 'FAILED',
  since: '2026-01-01T00:00:00.000Z',
  until: null,
  referenceId: null,
  selected: 811,
  resent: 0,
  refused: 0,
  delivered: 0,
  failedAgain: 0,
  pending: 0,
  refusals: { newer: 0, otherPending: 0, otherDelivered: 0, noNotifyUrl: 0 },
  unknown: 0,
  createdAt: '2026-01-02T00:00:00.000Z',
  finishedAt: null,
};
const UNDELIVERED: UndeliveredNotification = {
  headers: {
    'Content-Type': 'application/json',
    'X-Timestamp': '1767225600',
    'X-Nonce-Str': 'aZ09bY18cX27dW36eV45fU54gT63hS72',
    'X-Signature': 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79',
    'X-Webhook-Id': 's0kT3aVb9Rm5Wc7Zp1Qx4L',
    'X-Webhook-Attempt': '5',
  },
  body: '{}',
};
const FINISHED: ResendView = {
  ...STARTED,
  state: 'FINISHED',
  resent: 809,
  refused: 2,
  delivered: 805,
  failedAgain: 3,
  pending: 1,
  refusals: { ...STARTED.refusals, newer: 2 },
  finishedAt: '2026-01-02T00:00:04.000Z',
};

export const UNDELIVERED_OPERATIONS = operations('Webhooks', UndeliveredController, {
  read: {
    id: 'listUndelivered',
    summary: 'Read what was not delivered',
    description:
      'Notifications as an attempt would send them, signed now, the oldest first: pending ones, and the last FAILED one of ' +
      'each order that has none pending or delivered. Reading changes nothing: pending notifications are still sent. With ' +
      '`Accept: application/x-ndjson` the answer has one notification on each line, without pages. If the connection ' +
      'breaks, continue with the `X-Webhook-Id` of the last complete line as `cursor`.',
    parameters: { query: UndeliveredQuery },
    answers: {
      // Without the lines: a client generated from two media types of one answer cannot know which one it gets.
      200: answer(
        'A page.',
        UndeliveredPage,
        { data: [UNDELIVERED], nextCursor: null, hasMore: false },
        { headers: NOT_STORED },
      ),
    },
    failures: [() => validated(UndeliveredQuery, { cursor: '7' }, 'query'), noSecret(ID)],
  },
  resend: {
    id: 'resendWebhooks',
    summary: 'Send FAILED notifications again',
    description:
      'The resend continues in the background, also after a restart; `Location` shows its progress. Each notification is sent ' +
      'as a new one, unless its order has a newer, pending or delivered notification. The resend waits while the client ' +
      'has as many pending notifications as its limit. Ten a minute.',
    body: { schema: ResendRequest, example: { status: 'FAILED', since: '2026-01-01T00:00:00Z' } },
    answers: {
      202: answer('The resend has begun.', ResendView, STARTED, { headers: { Location: 'The URL of its progress.' } }),
    },
    failures: [
      () => checkedRequest({ status: 'SUCCESS' }),
      () => checkedRequest({ status: 'FAILED', since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }),
      tooManyPerMinute(RESEND_LIMIT),
    ],
  },
  show: {
    id: 'getWebhookResend',
    summary: 'Get the progress of a resend',
    description: 'Answers 404 for a request that does not exist, and for a request of another client.',
    parameters: {
      path: z.object({ id: z.string().meta({ description: 'The `id` of the answer 202.', example: ID }) }),
    },
    answers: { 200: answer('The progress.', ResendView, FINISHED) },
    failures: [unknownResend(ID)],
  },
});
