import { z } from 'zod';
import { moment, named } from '../../http/operation.js';
import { fieldError, invalidFields, validated } from '../../http/problem.js';
import { givenMoment, ReferenceId, time } from '../webhook-view.js';
import type { WebhookResend } from './webhook-resend.entity.js';

export const ResendRequest = named(
  'ResendRequest',
  z.strictObject({
    status: z.literal('FAILED', 'must be FAILED; only a FAILED webhook can be sent again'),
    since: givenMoment.optional().describe('Only those that failed at this time or later.'),
    until: givenMoment.optional().describe('Only those that failed before this time.'),
    referenceId: ReferenceId.optional().describe('Only those of this order’s `key`.'),
  }),
);
/** Which FAILED webhooks to send again: those that fit all fields. */
export type ResendRequest = z.infer<typeof ResendRequest>;

const count = (description: string) => z.int().describe(description);

export const ResendView = named(
  'WebhookResend',
  z.object({
    id: z.string(),
    state: z
      .enum(['RUNNING', 'FINISHED', 'STOPPED'])
      .describe('STOPPED: the operator of the service ended it. What is left is still FAILED.'),
    status: z.literal('FAILED'),
    since: moment.nullable(),
    until: moment.nullable(),
    referenceId: z.string().nullable(),
    selected: count('The notifications that matched the request when it was made.'),
    resent: count('Those that were sent again so far, each as a new notification.'),
    refused: count('Those that were not sent again; `refusals` says why.'),
    delivered: count('Of those that were sent again, the new notifications that were delivered.'),
    failedAgain: count('The new notifications that have FAILED too.'),
    pending: count('The new notifications that are pending.'),
    refusals: z.object({
      newer: count('Another notification of the order failed later.'),
      otherPending: count('Another notification of the order was pending.'),
      otherDelivered: count('Another notification of the order was delivered.'),
      noNotifyUrl: count('The client had no Notify URL.'),
    }),
    unknown: count(
      'Those of `resent` and `refused` that are in none of these counts: a process of an earlier version of Usher ' +
        'handled them during an upgrade, or they were deleted because of their age.',
    ),
    createdAt: moment,
    finishedAt: moment.nullable(),
  }),
);
/** A request to send FAILED webhooks again, and how far it is. Times as RFC 3339 text in UTC. */
export type ResendView = z.infer<typeof ResendView>;

/** What the request selects. 400 for an invalid field, and for a time range that is empty. */
export function checkedRequest(input: unknown): Pick<WebhookResend, 'referenceId' | 'since' | 'until'> {
  const { referenceId = null, ...times } = validated(ResendRequest, input);
  const since = times.since === undefined ? null : Date.parse(times.since);
  const until = times.until === undefined ? null : Date.parse(times.until);
  if (since !== null && until !== null && since >= until)
    throw invalidFields([fieldError('body', ['until'], 'must be later than since')]);
  return { referenceId, since, until };
}

export const stateOf = ({ finishedAt, isStopped }: WebhookResend): ResendView['state'] =>
  finishedAt === null ? 'RUNNING' : isStopped ? 'STOPPED' : 'FINISHED';

/** What became of the webhooks of a request. */
export type ResendOutcome = Pick<ResendView, 'delivered' | 'failedAgain' | 'pending' | 'refusals' | 'unknown'>;

export const resendView = (row: WebhookResend & ResendOutcome): ResendView =>
  ResendView.parse({
    ...row,
    state: stateOf(row),
    status: 'FAILED',
    since: time(row.since),
    until: time(row.until),
    // Null only in an operator's request, which no client sees.
    selected: row.selected ?? 0,
    createdAt: time(row.createdAt),
    finishedAt: time(row.finishedAt),
  });
