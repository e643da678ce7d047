import { z } from 'zod';
import { tooManyPending } from '../pending-limit.js';
import { notifyUrlErrors, notifyUrlMissing } from '../../clients/clients.service.js';
import { tooManyPerMinute } from '../../http/minute-limit.js';
import { answer, operations } from '../../http/operation.js';
import { invalidFields, validated } from '../../http/problem.js';
import { noSecret } from '../deliver/signing.js';
import { unknownWebhook } from '../webhook-queries.js';
import { notFailed } from '../webhook.service.js';
import { WebhooksController } from './webhooks.controller.js';
import { NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import { diagnosisOf } from '../transport/diagnosis.js';
import { WebhookHealth } from '../webhook-health.js';
import { ClientWebhook, WebhookPage, WebhookQuery, WebhookStory } from './client-view.js';
import { TEST_LIMIT, TestRequest, TestResult } from './test-notifications.js';

const KEY = 'TW92aWVPcmRlcjpzMGtUM2FWYjlRNHhMMm1OOHBSN2NZ';
const ID = 's0kT3aVb9Rm5Wc7Zp1Qx4L';

const FAILED: ClientWebhook = {
  id: ID,
  referenceId: KEY,
  eventType: NOTIFY_ORDER_COMPLETION,
  notifyUrl: 'https://partner.example/notify',
  status: 'FAILED',
  attemptCount: 5,
  nextAttemptAt: null,
  pausedSince: null,
  createdAt: '2026-01-01T00:00:05.000Z',
  finishedAt: '2026-01-01T00:10:00.412Z',
  resendOf: null,
  resentAs: 's0kT4bWc0Sn6Xd8Aq2Ry5M',
};
const RESENT: ClientWebhook = {
  ...FAILED,
  id: 's0kT4bWc0Sn6Xd8Aq2Ry5M',
  status: 'PENDING',
  attemptCount: 0,
  nextAttemptAt: '2026-01-01T01:00:00.000Z',
  createdAt: '2026-01-01T01:00:00.000Z',
  finishedAt: null,
  resendOf: ID,
  resentAs: null,
};
const STORY: WebhookStory = {
  ...FAILED,
  attempts: [
    {
      number: 1,
      startedAt: '2026-01-01T00:00:05.013Z',
      durationMs: 212,
      phase: 'body',
      address: '93.184.215.14',
      responseStatus: 500,
      error: 'the receiver answered 500',
      diagnosis: diagnosisOf('receiver-failed'),
      responseSnippet: 'Internal Server Error',
    },
  ],
  plan: null,
};

export const TEST_RESULT: TestResult = {
  id: 's0kT5cXd1To7Ye9Br3Sz6N',
  notifyUrl: 'https://partner.example/notify',
  outcome: 'refused',
  responseStatus: 401,
  durationMs: 87,
  phase: 'body',
  address: '93.184.215.14',
  error: 'the receiver answered 401',
  diagnosis: diagnosisOf('signature-refused'),
  responseSnippet: 'Unauthorized',
};

const HEALTH: WebhookHealth = {
  hosts: [
    {
      host: 'partner.example',
      failuresInARow: 3,
      lastSuccessAt: '2026-01-01T00:00:05.013Z',
      lastFailureAt: '2026-01-01T00:04:00.021Z',
      lastDiagnosis: diagnosisOf('receiver-failed'),
      oldestPendingAt: '2026-01-01T00:00:40.000Z',
      pausedSince: null,
      answerTimes: { attemptCount: 100, medianMs: 84, p95Ms: 412 },
    },
  ],
};

export const NO_HTTPS = invalidFields(
  notifyUrlErrors('http://partner.example/notify', { allowPrivateHosts: false, httpsOnly: true }),
);
const path = z.object({ id: z.string().meta({ description: 'The webhook’s `id`.', example: ID }) });

export const WEBHOOK_OPERATIONS = operations('Webhooks', WebhooksController, {
  page: {
    id: 'listWebhooks',
    summary: 'List notifications',
    description: 'The client’s own notifications, newest first. A page does not change when new notifications arrive.',
    parameters: { query: WebhookQuery },
    answers: {
      200: answer('A page.', WebhookPage, { data: [FAILED], nextCursor: null, hasMore: false }),
    },
    failures: [() => validated(WebhookQuery, { cursor: '7' }, 'query')],
  },
  health: {
    id: 'getWebhookHealth',
    summary: 'Get the delivery figures of your receivers',
    description:
      'For each host that notifications go to: failures in a row, the oldest pending notification, and how long answers ' +
      'took. It considers the newest 200 notifications and the oldest 1000 pending ones.',
    answers: { 200: answer('The hosts.', WebhookHealth, HEALTH) },
  },
  show: {
    id: 'getWebhook',
    summary: 'Get a notification with its attempts',
    description: 'Answers 404 for a notification that does not exist, and for a notification of another client.',
    parameters: { path },
    answers: { 200: answer('The notification.', WebhookStory, STORY) },
    failures: [unknownWebhook(ID)],
  },
  test: {
    id: 'testWebhook',
    summary: 'Send a sample notification',
    description:
      'Signs and sends a test notification like a real one and answers with the result. The body has `"test": true`, and ' +
      'the header is `X-Webhook-Test: true`. Its order does not exist. It is sent once and is not listed. Ten a minute.',
    body: { schema: TestRequest, example: { notifyUrl: 'https://partner.example/notify' }, optional: true },
    answers: { 200: answer('The result of the test.', TestResult, TEST_RESULT) },
    failures: [NO_HTTPS, noSecret(ID), notifyUrlMissing(), tooManyPerMinute(TEST_LIMIT), tooManyPending(10_000)],
  },
  resend: {
    id: 'resendWebhook',
    summary: 'Send a FAILED notification again',
    description: 'Creates a new notification. A delivered notification cannot be sent again.',
    parameters: { path },
    answers: { 201: answer('The new notification.', ClientWebhook, RESENT) },
    failures: [unknownWebhook(ID), notFailed({ id: ID, status: 'SUCCESS' }), tooManyPending(10_000)],
  },
});
