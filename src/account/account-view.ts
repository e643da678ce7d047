import { z } from 'zod';
import { GRANT_TYPES } from '../clients/client.entity.js';
import { moment, named } from '../http/operation.js';
import { IdempotencyKeyHeader } from '../http/idempotency-key.js';
import { parseDuration } from '../values/duration.js';
import { TestResult } from '../webhooks/api/test-notifications.js';

const SecretState = named(
  'SecretState',
  z.object({
    createdAt: moment,
    expiresAt: moment.nullable().describe('The end of the overlap of a rotation, for the old secret.'),
    signs: z.enum(['X-Signature', 'X-Signature-Next']).describe('The header that this secret makes.'),
    hasLeaked: z.boolean().describe('It only signs: no request is authenticated with it.'),
  }),
);

/** A client as it sees itself. It never contains a secret. */
export const AccountView = named(
  'Account',
  z.object({
    id: z.string(),
    name: z.string(),
    notifyUrl: z
      .string()
      .nullable()
      .describe('Notifications are sent here unless their order has a Notify URL of its own.'),
    grants: z.array(z.enum(GRANT_TYPES)).describe('The values that the client may send as `grant_type`.'),
    redirectUris: z.array(z.string()).describe('For the authorisation-code grant.'),
    secrets: z.array(SecretState).describe('The valid secrets, without their values: two during a rotation.'),
    deliveriesPaused: named('DeliveriesPaused', z.object({ since: moment, reason: z.string() }))
      .nullable()
      .describe('Set while an operator has paused its deliveries: notifications wait and use up no attempt.'),
    createdAt: moment,
  }),
);
/** A client as it sees itself. Times as RFC 3339 text in UTC. */
export type AccountView = z.infer<typeof AccountView>;

export const NewNotifyUrl = named('NewNotifyUrl', z.strictObject({ notifyUrl: z.string() }));

export const ChangedNotifyUrl = named(
  'ChangedNotifyUrl',
  z.object({ notifyUrl: z.string(), test: TestResult.describe('What the receiver did with the sample.') }),
);
/** The Notify URL that was set, and what its receiver did with the sample. */
export type ChangedNotifyUrl = z.infer<typeof ChangedNotifyUrl>;

const [MIN_OVERLAP_MS, MAX_OVERLAP_MS] = [60_000, 2_592_000_000];

export const RotationRequest = named(
  'RotationRequest',
  z.strictObject({
    overlap: z
      .string()
      .default('24h')
      .transform((text) => parseDuration(text) ?? 0)
      .refine((ms) => ms >= MIN_OVERLAP_MS && ms <= MAX_OVERLAP_MS, 'must be a duration like 24h, from 1m to 30d')
      .describe('How long both secrets are valid: `1m` to `30d`.'),
  }),
);

export const RotateHeaders = z.object({
  'Idempotency-Key': IdempotencyKeyHeader.meta({
    description: 'Your own key for this rotation, hard to guess. Send the same key again to get a lost answer.',
    example: '4b1d5a52-0f7c-4c8e-9a5e-5f1c1a3d9a11',
  }),
});

export const NewSecret = named(
  'NewSecret',
  z.object({
    id: z.string(),
    secret: z.string().describe('The new secret. Save it now.'),
    oldSecretValidUntil: moment.describe('Both secrets are valid until then.'),
  }),
);
/** The answer to a rotation. The time as RFC 3339 text in UTC. */
export type NewSecret = z.infer<typeof NewSecret>;
