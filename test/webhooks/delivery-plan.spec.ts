import { expect, test } from '@jest/globals';
import { SPECIFIED_RETRY } from '../../src/values/retry-schedule.js';
import { deliveryPlan } from '../../src/webhooks/webhook-view.js';
import type { WebhookAttempt } from '../../src/webhooks/webhook.entity.js';

const at = (time: string): number => Date.parse(`2026-01-01T${time}Z`);

const attempt = (number: number, started: string, durationMs: number | null): WebhookAttempt => ({
  webhookId: 's0kT3aVb9Rm5Wc7Zp1Qx4L',
  number,
  startedAt: at(started),
  durationMs,
  phase: null,
  address: null,
  responseStatus: null,
  error: null,
  diagnosis: null,
  responseSnippet: null,
  signedWith: null,
});

const planned = (attempts: number, due: string, last?: WebhookAttempt): string[] => {
  const plan = deliveryPlan(SPECIFIED_RETRY, { status: 'PENDING', attempts, nextAttemptAt: at(due) }, last);
  const times = (plan?.attempts ?? []).map(({ number, notBefore }) => `${number} ${notBefore.slice(11, 19)}`);
  return [...times, `FAILED ${plan?.failedNotBefore.slice(11, 19)}`];
};

test.each([
  [
    'that was not tried yet',
    planned(0, '12:00:20'),
    ['1 12:00:20', '2 12:02:00', '3 12:04:00', '4 12:06:00', '5 12:08:00', 'FAILED 12:08:00'],
  ],
  [
    'whose third attempt failed',
    planned(3, '12:06:00', attempt(3, '12:04:00', 900)),
    ['4 12:06:00', '5 12:08:00', 'FAILED 12:08:00'],
  ],
  [
    'whose receiver asked to wait',
    planned(1, '12:06:00', attempt(1, '12:00:20', 900)),
    ['2 12:06:00', '3 12:08:00', '4 12:10:00', '5 12:12:00', 'FAILED 12:12:00'],
  ],
  [
    'that is being tried: the next attempt can be sooner than the end of the lease',
    planned(3, '12:06:00', attempt(3, '12:02:10', null)),
    ['4 12:04:00', '5 12:06:00', 'FAILED 12:06:00'],
  ],
  ['whose last attempt is open', planned(5, '12:10:00', attempt(5, '12:08:00', null)), ['FAILED 12:08:00']],
])('the plan of a webhook %s', (_name, plan, expected) => {
  expect(plan).toEqual(expected);
});

test.each(['SUCCESS', 'FAILED'] as const)('a webhook that is %s has no plan', (status) => {
  expect(deliveryPlan(SPECIFIED_RETRY, { status, attempts: 1, nextAttemptAt: null }, undefined)).toBeNull();
});
