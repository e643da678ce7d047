import { z } from 'zod';
import { moment, named } from '../http/operation.js';
import type { Webhook, WebhookAttempt } from './webhook.entity.js';

/** Printable ASCII: what deduplication compares must not depend on a collation. */
export const ReferenceId = z
  .string()
  .regex(/^[\x21-\x7e]{1,191}$/, 'must be 1 to 191 printable ASCII characters without spaces');

/** A webhook as operators see it. */
export const WebhookView = z.object({
  id: z.string(),
  referenceId: z.string().meta({ description: 'The order’s `key`.' }),
  eventType: z.string(),
  clientId: z.string(),
  notifyUrl: z.string(),
  status: z.enum(['PENDING', 'SUCCESS', 'FAILED']),
  attempts: z.int().meta({ description: 'How many were made.' }),
  nextAttemptAt: moment.nullable().meta({ description: 'Not before this moment; null once it is over.' }),
  createdAt: moment,
  finishedAt: moment.nullable(),
  resendOf: z.string().nullable().meta({ description: 'The FAILED webhook that this one sends again.' }),
});
export type WebhookView = z.infer<typeof WebhookView>;

export const AttemptView = z
  .object({
    number: z.int(),
    startedAt: moment,
    durationMs: z.int().nullable().meta({ description: 'Null: under way, or cut off by a crash.' }),
    phase: z.string().nullable().meta({ description: 'How far it came: dns, connect, tls, headers, body.' }),
    address: z.string().nullable().meta({ description: 'Connected to; null where it is private.' }),
    responseStatus: z.int().nullable(),
    error: z.string().nullable().meta({ description: 'Why it failed.' }),
    responseSnippet: z
      .string()
      .nullable()
      .meta({ description: 'The beginning of the answer’s body, at most 1 KiB; null where the address is private.' }),
  })
  .register(named, { id: 'WebhookAttempt' });
export type AttemptView = z.infer<typeof AttemptView>;

export function webhookView(row: Webhook): WebhookView {
  const { id, referenceId, eventType, clientId, notifyUrl, status, attempts, resendOf } = row;
  return {
    ...{ id, referenceId, eventType, clientId, notifyUrl, status, attempts, resendOf },
    nextAttemptAt: time(row.nextAttemptAt),
    createdAt: new Date(row.createdAt).toISOString(),
    finishedAt: time(row.finishedAt),
  };
}

export function attemptView({ webhookId: _, ...attempt }: WebhookAttempt): AttemptView {
  return { ...attempt, startedAt: new Date(attempt.startedAt).toISOString() };
}

const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
