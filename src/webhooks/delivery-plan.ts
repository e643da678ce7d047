import { z } from 'zod';
import { moment, named } from '../http/operation.js';
import { nextAttemptAt, type RetryPolicy, retryRunAt } from '../values/retry-schedule.js';
import type { Webhook, WebhookAttempt } from './webhook.entity.js';

export const DeliveryPlan = z
  .object({
    attempts: z
      .array(z.object({ number: z.int(), notBefore: moment }))
      .meta({ description: 'The attempts that are left, each with the time before which it is not made.' }),
    failedNotBefore: moment.meta({ description: 'FAILED not before this time, if every attempt that is left fails.' }),
  })
  .describe('What follows while a webhook is PENDING. A Retry-After of the receiver can move each step later.')
  .register(named, { id: 'DeliveryPlan' });
/** What follows while a webhook is PENDING. Times as RFC 3339 text in UTC. */
export type DeliveryPlan = z.infer<typeof DeliveryPlan>;

type Row = Pick<Webhook, 'status' | 'attempts' | 'nextAttemptAt'>;

/** Null for a webhook that has ended. `last` is its last attempt, if there was one. */
export function deliveryPlan(policy: RetryPolicy, webhook: Row, last: WebhookAttempt | undefined): DeliveryPlan | null {
  const { status, attempts, nextAttemptAt: due } = webhook;
  if (status !== 'PENDING' || due === null) return null;
  const isOpen = last?.number === attempts && last.durationMs === null;
  // While an attempt is open, the row has the end of its lease; the attempt can fail sooner.
  const next = isOpen ? retryRunAt(policy, last.startedAt + policy.minIntervalMs) : due;
  const planned: DeliveryPlan['attempts'] = [];
  let at = attempts < policy.maxAttempts ? next : Math.min(last?.startedAt ?? due, due);
  for (let number = attempts + 1; number <= policy.maxAttempts; number += 1) {
    planned.push({ number, notBefore: new Date(at).toISOString() });
    at = nextAttemptAt(policy, number, at) ?? at;
  }
  return { attempts: planned, failedNotBefore: new Date(at).toISOString() };
}
