import { z } from 'zod';
import { SAMPLE_ORDER } from '../../../packages/receiver/dist/tools.js';
import { moment, named } from '../../http/operation.js';
import { type CompletedOrderData, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';

const cents = z
  .int()
  .describe('In the minor unit of the currency (ISO 4217): 4200 is MYR 42.00, JPY 4200 or KWD 4.200.');

const CompletedOrder = named(
  'CompletedOrder',
  z.object({
    key: z.string().describe('The order’s unique identifier, Base64. Deduplicate on it.'),
    bookingId: z.string().describe('The booking reference of the cinema operator.'),
    transactionId: z.string().describe('The payment transaction.'),
    currencyCode: z.string().describe('ISO 4217.'),
    totalAmount: cents,
    bookingAmount: cents,
    payableAmount: cents,
    status: z.string().describe('`COMPLETED` when confirmed with the operator.'),
    qrCode: z.string().optional().describe('The code for entry to the cinema, if the operator issued one.'),
    createdAt: moment,
    lastUpdatedAt: moment,
  }),
) satisfies z.ZodType<CompletedOrderData>;

/** The body of a notification (specification 2.3). */
export const Notification = named(
  'Notification',
  z.object({
    eventType: z.literal(NOTIFY_ORDER_COMPLETION),
    test: z
      .literal(true)
      .optional()
      .describe(
        'Only in a sample, which belongs to no order: from `POST /webhooks/test`, `PUT /client/notify-url`, a certification ' +
          'or the operator.',
      ),
    data: CompletedOrder,
  }),
);
export type Notification = z.infer<typeof Notification>;

const header = (pattern: RegExp, description: string, example: string) =>
  z.string().regex(pattern).meta({ description, example });

const HMAC = /^[0-9a-f]{64}$/;

/** The headers of a notification: those of specification 6.2 and Usher's own. */
export const NotificationHeaders = z.object({
  'X-Timestamp': header(/^\d{10}$/, 'Seconds since 1970 at signing.', '1767225600'),
  'X-Nonce-Str': header(
    /^[A-Za-z0-9]{32}$/,
    'Random, and different for every attempt.',
    'aZ09bY18cX27dW36eV45fU54gT63hS72',
  ),
  'X-Signature': header(
    HMAC,
    'Hex HMAC-SHA256, keyed with the client secret, over X-Timestamp, X-Nonce-Str and the Base64 of the raw body.',
    '52ffabb36d5e7257f7a6da26a20ce87676cdd25fcc61695cd3515fba9974cf9f',
  ),
  'X-Signature-Next': z
    .string()
    .regex(HMAC)
    .optional()
    .describe('While the secret is being changed: the same signature, made with the new secret.'),
  'X-Webhook-Id': z
    .string()
    .meta({ description: 'The same for every attempt of one notification.', example: 's0kT3aVb9Rm5Wc7Zp1Qx4L' }),
  'X-Webhook-Attempt': header(/^\d+$/, 'The number of the attempt, from 1.', '1'),
  'X-Webhook-Test': z.literal('true').optional().describe('Only in a sample; its body has `test` as well.'),
});

export const NOTIFICATION_EXAMPLE: Notification = { eventType: NOTIFY_ORDER_COMPLETION, data: SAMPLE_ORDER };
