import { rotationEnded, rotationInProgress, useNewSecret } from '../clients/secrets/secret-rotation.js';
import { tooManyPerMinute } from '../http/minute-limit.js';
import { answer, NOT_STORED, operations } from '../http/operation.js';
import { validated } from '../http/problem.js';
import { TEST_LIMIT } from '../webhooks/api/test-notifications.js';
import { NO_HTTPS, TEST_RESULT } from '../webhooks/api/webhook.openapi.js';
import {
  AccountView,
  ChangedNotifyUrl,
  NewNotifyUrl,
  NewSecret,
  RotateHeaders,
  RotationRequest,
} from './account-view.js';
import { AccountController } from './account.controller.js';
import { CHANGE_LIMIT, checkRotationKey, sampleRefused } from './client-account.js';

const ID = 'b8E7BDVoa1df1jDrbYlF';
const URL = 'https://partner.example/notify';
const UNTIL = '2026-01-02T00:00:00.000Z';

const ACCOUNT: AccountView = {
  id: ID,
  name: 'Partner',
  notifyUrl: URL,
  grants: ['client_credentials', 'refresh_token'],
  redirectUris: [],
  secrets: [{ createdAt: '2026-01-01T00:00:00.000Z', expiresAt: null, signs: 'X-Signature', hasLeaked: false }],
  deliveriesPaused: null,
  createdAt: '2025-06-01T00:00:00.000Z',
};
const DELIVERED: ChangedNotifyUrl['test'] = {
  ...TEST_RESULT,
  outcome: 'delivered',
  responseStatus: 200,
  error: null,
  diagnosis: null,
  responseSnippet: 'ok',
};
const SECRET: NewSecret = {
  id: ID,
  secret: '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo',
  oldSecretValidUntil: UNTIL,
};

export const ACCOUNT_OPERATIONS = operations('Client', AccountController, {
  show: {
    id: 'getAccount',
    summary: 'Get your own account',
    description:
      'The account without its secrets. All routes of this group need the client id and secret, and refuse access tokens.',
    answers: { 200: answer('The account.', AccountView, ACCOUNT, { headers: NOT_STORED }) },
  },
  setNotifyUrl: {
    id: 'setNotifyUrl',
    summary: 'Change your Notify URL',
    description:
      'Sends a signed sample to the new URL first, like `POST /webhooks/test`, and changes the URL only if the receiver ' +
      'answers 2xx. Otherwise the answer is 422, and its `test` says why. Pending notifications still go to the earlier URL.',
    body: { schema: NewNotifyUrl, example: { notifyUrl: URL } },
    answers: {
      200: answer('Changed.', ChangedNotifyUrl, { notifyUrl: URL, test: DELIVERED }, { headers: NOT_STORED }),
    },
    failures: [NO_HTTPS, sampleRefused(TEST_RESULT), tooManyPerMinute(TEST_LIMIT)],
  },
  rotate: {
    id: 'rotateSecret',
    summary: 'Issue a new secret',
    description:
      'Both secrets are valid for 24 hours, or for the `overlap`; until then the old one makes `X-Signature` and the new one `X-Signature-Next`. ' +
      'If the answer is lost, send the same `Idempotency-Key` again within this time to get the same answer.',
    parameters: { header: RotateHeaders },
    body: { schema: RotationRequest, example: { overlap: '24h' }, optional: true },
    answers: { 200: answer('The new secret.', NewSecret, SECRET, { headers: NOT_STORED }) },
    failures: [
      () => checkRotationKey(undefined),
      () => validated(RotationRequest, { overlap: '1s' }),
      rotationInProgress(ID, Date.parse(UNTIL)),
      rotationEnded(),
      tooManyPerMinute(CHANGE_LIMIT),
    ],
  },
  finish: {
    id: 'finishRotation',
    summary: 'End the old secret now',
    description:
      'Authenticate with the new secret. The request can be repeated; without a rotation it changes nothing.',
    answers: { 200: answer('The account, with one secret.', AccountView, ACCOUNT, { headers: NOT_STORED }) },
    failures: [useNewSecret(), tooManyPerMinute(CHANGE_LIMIT)],
  },
});
