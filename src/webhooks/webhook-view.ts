import { z } from 'zod';
import { moment, named } from '../http/operation.js';
import { timeOfId } from '../values/identifier.js';
import { DIAGNOSES, type Diagnosis, type DiagnosisCode, diagnosisOf } from './transport/diagnosis.js';
import { DeliveredReference, HELD_FROM, type Webhook, type WebhookAttempt } from './webhook.entity.js';
import { nextAttemptAt, type RetryPolicy, retryRunAt } from '../values/retry-schedule.js';

/** Printable ASCII only, so that deduplication does not depend on the database's collation. */
export const ReferenceId = z
  .string()
  .regex(/^[\x21-\x7e]{1,191}$/, 'must be 1 to 191 printable ASCII characters without spaces');

const RFC_3339 = 'must be an RFC 3339 time like 2026-01-01T00:00:00Z';
const [FIRST_MOMENT, LAST_MOMENT] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** A time that a client gives, with any offset. T and Z may be in lower case (RFC 3339 §5.6). */
export const givenMoment = z
  .string(RFC_3339)
  .toUpperCase()
  .check(z.iso.datetime({ offset: true, error: RFC_3339 }))
  // The offset can lead out of the years that RFC 3339 can write. NaN already has the error above.
  .refine((text) => !(Date.parse(text) < FIRST_MOMENT || Date.parse(text) > LAST_MOMENT), {
    error: 'must be between the years 0000 and 9999 in UTC',
  });

export const WebhookView = z.object({
  id: z.string(),
  referenceId: z.string().describe('The order’s `key`.'),
  eventType: z.string(),
  clientId: z.string(),
  ownerId: z.string().nullable().describe('The resource owner of the order, if it has one.'),
  notifyUrl: z.string().nullable().describe('Null after it was deleted because of its age.'),
  status: z.enum(['PENDING', 'SUCCESS', 'FAILED']),
  attemptCount: z.int().describe('The number of attempts made.'),
  nextAttemptAt: moment
    .nullable()
    .describe(
      'The next attempt is not made before this time. Null after the notification has ended, and while it is held.',
    ),
  pausedSince: moment
    .nullable()
    .describe('When an operator paused deliveries, if the notification waits for the end of that pause. Else null.'),
  createdAt: moment,
  finishedAt: moment.nullable(),
  resendOf: z.string().nullable().describe('The id of the FAILED notification that this one sends again.'),
  resentAs: z
    .string()
    .nullable()
    .describe('Of a FAILED notification: the id of the newest one that followed it for the same order and event.'),
});
/** A webhook as its client and operators see it. Times as RFC 3339 text in UTC. */
export type WebhookView = z.infer<typeof WebhookView>;

export const OrderDelivery = named(
  'OrderDelivery',
  z.object({
    webhookId: z.string(),
    ...WebhookView.pick({ status: true, attemptCount: true, finishedAt: true }).shape,
  }),
);
/** What became of an order's notification: the one that is pending or delivered, else the last one that failed. */
export type OrderDelivery = z.infer<typeof OrderDelivery>;

const Diagnosis = named(
  'Diagnosis',
  z.object({
    code: z.enum(Object.keys(DIAGNOSES) as DiagnosisCode[]).describe('For programs.'),
    meaning: z.string().describe('What the attempt shows about the receiver.'),
    remedy: z.string().describe('What to do about it.'),
  }),
) satisfies z.ZodType<Diagnosis>;
export const OptionalDiagnosis = Diagnosis.nullable();

export const AttemptView = named(
  'WebhookAttempt',
  z.object({
    number: z.int(),
    startedAt: moment,
    durationMs: z.int().nullable().describe('Null while the attempt is running, or if a crash ended it.'),
    phase: z.string().nullable().describe('The last phase reached: dns, connect, tls, headers or body.'),
    address: z.string().nullable().describe('The IP address connected to. Null if it is hidden.'),
    responseStatus: z.int().nullable(),
    error: z.string().nullable().describe('Why the attempt failed.'),
    diagnosis: OptionalDiagnosis,
    responseSnippet: z
      .string()
      .nullable()
      .describe('The beginning of the response body, at most 1 KiB. Null if it is hidden.'),
  }),
);
/** One attempt of a webhook. Times as RFC 3339 text in UTC. */
export type AttemptView = z.infer<typeof AttemptView>;

/** `resentAs` is null; `withResentAs` sets it. */
export function webhookView(row: Webhook | DeliveredReference): WebhookView {
  const webhook = row instanceof DeliveredReference ? deliveredWebhook(row) : row;
  const { id, referenceId, eventType, clientId, ownerId, status, attempts: attemptCount, resendOf } = webhook;
  const { nextAttemptAt: due } = webhook;
  const isHeld = due !== null && due >= HELD_FROM;
  return {
    id,
    referenceId,
    eventType,
    clientId,
    ownerId,
    notifyUrl: webhook.notifyUrl || null,
    status,
    attemptCount,
    resendOf,
    resentAs: null,
    nextAttemptAt: isHeld ? null : time(due),
    pausedSince: isHeld ? time(due - HELD_FROM) : null,
    createdAt: time(webhook.createdAt),
    finishedAt: time(webhook.finishedAt),
  };
}

/** What is still known of a webhook whose row was deleted because of its age. */
const deliveredWebhook = (row: DeliveredReference) => ({
  ...row,
  id: row.webhookId,
  notifyUrl: '',
  status: 'SUCCESS' as const,
  resendOf: null,
  nextAttemptAt: null,
  createdAt: timeOfId(row.webhookId),
});

export function attemptView(
  { webhookId: _, signedWith: _with, ...attempt }: WebhookAttempt,
  webhook: Pick<WebhookView, 'status' | 'attemptCount'>,
): AttemptView {
  const isCutOff =
    attempt.durationMs === null && (webhook.status !== 'PENDING' || attempt.number < webhook.attemptCount);
  const code = isCutOff ? 'interrupted' : attempt.diagnosis;
  const diagnosis = code && diagnosisOf(code);
  return { ...attempt, diagnosis, startedAt: time(attempt.startedAt) };
}

/** A time as RFC 3339 text in UTC. */
export function time(ms: number): string;
export function time(ms: number | null | undefined): string | null;
export function time(ms: number | null = null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

export const DeliveryPlan = named(
  'DeliveryPlan',
  z.object({
    attempts: z
      .array(z.object({ number: z.int(), notBefore: moment }))
      .describe('The remaining attempts, each with its earliest time.'),
    failedNotBefore: moment.describe(
      'If every remaining attempt fails, the notification becomes FAILED at this time or later.',
    ),
  }),
  'The next steps of a PENDING notification. A Retry-After of the receiver can move each step later.',
);
/** The next steps of a PENDING webhook. Times as RFC 3339 text in UTC. */
export type DeliveryPlan = z.infer<typeof DeliveryPlan>;

type Row = Pick<Webhook, 'status' | 'attempts' | 'nextAttemptAt'>;

/** Null for a webhook that has ended or is held. `last` is its last attempt, if there was one. */
export function deliveryPlan(policy: RetryPolicy, webhook: Row, last: WebhookAttempt | undefined): DeliveryPlan | null {
  const { status, attempts, nextAttemptAt: due } = webhook;
  if (status !== 'PENDING' || due === null || due >= HELD_FROM) return null;
  const isOpen = last?.number === attempts && last.durationMs === null;
  // While an attempt is open, the row has the end of its lease; the attempt can fail sooner.
  const next = isOpen ? retryRunAt(policy, last.startedAt + policy.minIntervalMs) : due;
  const planned: DeliveryPlan['attempts'] = [];
  let at = attempts < policy.maxAttempts ? next : Math.min(last?.startedAt ?? due, due);
  for (let number = attempts + 1; number <= policy.maxAttempts; number += 1) {
    planned.push({ number, notBefore: time(at) });
    at = nextAttemptAt(policy, number, at) ?? at;
  }
  return { attempts: planned, failedNotBefore: time(at) };
}
