import { tooManyPerMinute } from '../../http/minute-limit.js';
import { answer, operations } from '../../http/operation.js';
import { noSecret } from '../deliver/signing.js';
import {
  CERTIFICATION_LIMIT,
  CertificationsController,
  noNotifyUrl,
  secretBeingChanged,
} from './certification.module.js';
import { Certification, CertificationRequest } from './certification.schemas.js';

const ID = 's0kT3aVb9Rm5Wc7Zp1Qx4L';

const EXAMPLE: Certification = {
  passed: false,
  notifyUrl: 'https://partner.example/notify',
  checks: [
    {
      name: 'valid',
      sent: 'as every order sends it',
      expected: 'accept',
      responseStatus: 200,
      durationMs: 12,
      passed: true,
      reason: 'the receiver answered 200',
      remedy: null,
    },
    {
      name: 'stale',
      sent: 'that was signed an hour ago, with a valid signature',
      expected: 'refuse',
      responseStatus: 200,
      durationMs: 9,
      passed: false,
      reason: 'the receiver answered 200 to a notification that was signed an hour ago, with a valid signature',
      remedy: 'refuse a notification whose X-Timestamp differs from the present time by more than 300 seconds',
    },
  ],
};

export const CERTIFICATION_OPERATIONS = operations('Webhooks', CertificationsController, {
  run: {
    id: 'certifyReceiver',
    summary: 'Check that a receiver does everything right (sandbox only)',
    description:
      'Sends six notifications to the client’s registered Notify URL: a valid one, the same again, one with letters outside ' +
      'ASCII, one as during a change of the secret, an altered one and a stale one. A correct receiver answers 2xx to ' +
      'the first four and 4xx to the others. All are marked as tests, and none is listed. Three a minute.',
    body: { schema: CertificationRequest, example: {}, optional: true },
    answers: { 200: answer('What the receiver did.', Certification, EXAMPLE) },
    failures: [noSecret(ID), secretBeingChanged(), noNotifyUrl(), tooManyPerMinute(CERTIFICATION_LIMIT)],
  },
});
