import { z } from 'zod';
import { type Failure, named, type Operation } from '../../http/operation.js';
import { CHECKS } from './checks.js';

/** The body of `POST /sandbox/certifications`: nothing can be chosen. */
export const CertificationRequest = z.strictObject({}).register(named, { id: 'CertificationRequest' });

export const CheckResult = z.object({
  name: z.enum(CHECKS),
  sent: z.string().meta({ description: 'What is special about the notification.' }),
  expected: z.enum(['accept', 'refuse']).meta({ description: '`accept`: a 2xx. `refuse`: a 4xx.' }),
  responseStatus: z.int().nullable().meta({ description: 'Null if there was no answer.' }),
  durationMs: z.int().nullable().meta({ description: 'Null if it was not sent.' }),
  passed: z.boolean(),
  reason: z.string().meta({ description: 'What the receiver did.' }),
  remedy: z.string().nullable().meta({ description: 'What to change. Null if nothing, or if it was not sent.' }),
});
export type CheckResult = z.infer<typeof CheckResult>;

export const Certification = z
  .object({
    passed: z.boolean().meta({ description: 'Whether the receiver did all of it right.' }),
    notifyUrl: z.string(),
    checks: z.array(CheckResult),
  })
  .register(named, { id: 'Certification' });
export type Certification = z.infer<typeof Certification>;

const NO_NOTIFY_URL: Failure = {
  status: 422,
  detail: 'the client has no Notify URL; ask the operator to set one',
};

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

/** Only a sandbox has it. */
export const CERTIFICATION_OPERATIONS: Operation[] = [
  {
    id: 'certifyReceiver',
    method: 'post',
    path: '/sandbox/certifications',
    tag: 'Webhooks',
    summary: 'Check that a receiver does everything right (sandbox only)',
    description:
      'Sends six notifications to the client’s registered Notify URL: a valid one, the same again, one with letters outside ' +
      'of ASCII, one as during a change of the secret, an altered one and a stale one. A correct receiver answers 2xx to ' +
      'the first four and 4xx to the others. All are marked as tests, and none is listed. Three a minute.',
    security: ['bearer'],
    body: { schema: CertificationRequest, example: {}, optional: true },
    answers: { 200: { description: 'What the receiver did.', schema: Certification, example: EXAMPLE } },
    failures: [
      { status: 404, detail: 'certifications exist only in the sandbox' },
      { status: 409, detail: 'the secret of this client is being changed; finish that first' },
      NO_NOTIFY_URL,
      { status: 429, detail: 'only 3 certifications a minute are allowed; try again later' },
    ],
  },
];
