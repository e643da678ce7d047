import { z } from 'zod';
import { type Certification as Certificate, CHECKS } from '../../../packages/receiver/dist/tools.js';
import { named } from '../../http/operation.js';

/** The body of `POST /sandbox/certifications`: an empty object. */
export const CertificationRequest = named('CertificationRequest', z.strictObject({}));

const CheckResult = z.object({
  name: z.enum(CHECKS),
  sent: z.string().describe('What is special about the notification.'),
  expected: z.enum(['accept', 'refuse']).describe('`accept`: a 2xx. `refuse`: a 4xx.'),
  responseStatus: z.int().nullable().describe('Null if there was no answer.'),
  durationMs: z.int().nullable().describe('Null if it was not sent.'),
  passed: z.boolean(),
  reason: z.string().describe('What the receiver did.'),
  remedy: z.string().nullable().describe('What to change. Null if nothing, or if it was not sent.'),
});

export const Certification = named(
  'Certification',
  z.object({
    passed: z.boolean().describe('Whether the receiver did all of it right.'),
    notifyUrl: z.string(),
    checks: z.array(CheckResult),
  }),
) satisfies z.ZodType<Certificate>;
export type Certification = z.infer<typeof Certification>;
