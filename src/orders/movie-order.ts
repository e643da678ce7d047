import { z } from 'zod';
import { moment, named } from '../http/operation.js';
import type { CompletedOrderData } from '../values/notification.js';
import { parseDuration } from '../values/duration.js';
import { orderKey } from '../values/identifier.js';
import { type MovieOrder, orderStatuses } from './movie-order.entity.js';

/**
 * The codes of ISO 4217 that Node's own list leaves out: funds, precious metals, units of account and test codes. Node's
 * list follows Unicode's releases and also has codes that were withdrawn.
 */
const RARE_CURRENCIES = 'BOV CHE CHW CLF COU MXV USN UYI UYW VED XAD XAG XAU XBA XBB XBC XBD XPD XPT XTS XUA XXX'.split(
  ' ',
);
const CURRENCIES = new Set([...Intl.supportedValuesOf('currency'), ...RARE_CURRENCIES]);

/** By the number of their decimals in ISO 4217, the currencies that have another number than two. */
const DECIMALS = Object.entries({
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
});

/** An amount for people, such as `42.00` for 4200 in MYR and `4200` in JPY. `amount`: a whole number of minor units. */
export function shownAmount(amount: number | bigint, currencyCode: string): string {
  const decimals = Number(DECIMALS.find(([, codes]) => codes.includes(currencyCode))?.[0] ?? 2);
  return String(amount)
    .padStart(decimals + 1, '0')
    .replace(new RegExp(`(?=.{${decimals}}$)(?!$)`), '.');
}

/** Usher neither converts nor compares amounts (docs/internals/decisions.md). */
const cents = z
  .int('must be a whole number from 0 to 9007199254740991, in the minor unit of the currency (cents for MYR)')
  .min(0, 'must not be negative')
  .meta({
    description: 'In the minor unit of the currency (ISO 4217): 4200 is MYR 42.00, JPY 4200 or KWD 4.200.',
    maximum: Number.MAX_SAFE_INTEGER,
  });

/** The body of create-movie-order. The specification does not define it; it is our choice. */
export const NewOrder = named(
  'NewOrder',
  z.strictObject({
    currencyCode: z
      .string()
      .refine((code) => CURRENCIES.has(code), 'must be an ISO 4217 code like MYR')
      .describe('An ISO 4217 code.'),
    totalAmount: cents,
    bookingAmount: cents,
    payableAmount: cents,
    notifyUrl: z
      .string()
      .optional()
      .describe('Where the notification is sent. Default: the Notify URL registered for the client.'),
  }),
);
/** What a client creates an order with. Amounts are in the minor unit of the currency. */
export type NewOrder = z.infer<typeof NewOrder>;

/** Text that every supported database stores unchanged: no NUL and no lone surrogates. */
const storable = z.string().regex(/^[^\0\p{Cs}]*$/u, 'must not contain U+0000 or lone surrogates');

const reference = storable.min(1, 'must not be empty').max(255, 'must have at most 255 characters');

export const Completion = named(
  'Completion',
  z.strictObject({
    bookingId: reference.describe('The booking reference of the cinema operator.'),
    transactionId: reference.describe('The payment transaction.'),
    qrCode: storable
      .min(1, 'must not be empty; omit it if there is no QR code')
      .max(4_096, 'must have at most 4096 characters')
      .optional()
      .describe('The code for entry to the cinema, if the operator issued one.'),
  }),
);
/** What the cinema operator completes an order with. */
export type Completion = z.infer<typeof Completion>;

const MAX_DELAY_MS = 600_000;

/** The body of the sandbox's completion: the values, and when and how often to send them. */
export const SandboxCompletion = named(
  'SandboxCompletion',
  Completion.extend({
    delay: z
      .string()
      .refine((text) => (parseDuration(text) ?? Infinity) <= MAX_DELAY_MS, 'must be a duration like 30s, at most 10m')
      .optional()
      .describe('Complete the order after this time, for example `30s`; at most `10m`.'),
    twice: z
      .boolean()
      .optional()
      .describe('Complete the order twice, as an operator does after a lost response. It is notified once.'),
  }),
);

export const OrderView = named(
  'MovieOrder',
  z.object({
    key: z.string().describe('The order’s unique identifier; the webhook’s `referenceId`.'),
    status: z.enum(orderStatuses),
    currencyCode: z.string(),
    totalAmount: cents,
    bookingAmount: cents,
    payableAmount: cents,
    notifyUrl: z.string().optional().describe('The order’s own Notify URL, if it has one.'),
    bookingId: z.string().optional(),
    transactionId: z.string().optional(),
    qrCode: z.string().optional(),
    createdAt: moment,
    lastUpdatedAt: moment,
  }),
);
/** An order as its client sees it. */
export type OrderView = z.infer<typeof OrderView>;

export function viewOf(order: MovieOrder): OrderView {
  return {
    key: orderKey(order.id),
    status: order.status,
    currencyCode: order.currencyCode,
    totalAmount: order.totalAmount,
    bookingAmount: order.bookingAmount,
    payableAmount: order.payableAmount,
    ...(order.notifyUrl !== null && { notifyUrl: order.notifyUrl }),
    ...(order.bookingId !== null && { bookingId: order.bookingId }),
    ...(order.transactionId !== null && { transactionId: order.transactionId }),
    ...(order.qrCode !== null && { qrCode: order.qrCode }),
    createdAt: rfc3339(order.createdAt),
    lastUpdatedAt: rfc3339(order.lastUpdatedAt),
  };
}

/** The `data` of the notification, with the fields in the order of specification 2.3. */
export function notificationData(
  order: MovieOrder,
  { bookingId, transactionId, qrCode }: Completion,
): CompletedOrderData {
  return {
    key: orderKey(order.id),
    bookingId,
    transactionId,
    currencyCode: order.currencyCode,
    totalAmount: order.totalAmount,
    bookingAmount: order.bookingAmount,
    payableAmount: order.payableAmount,
    status: order.status,
    ...(qrCode !== undefined && { qrCode }),
    createdAt: rfc3339(order.createdAt),
    lastUpdatedAt: rfc3339(order.lastUpdatedAt),
  };
}

/** RFC 3339 in UTC with milliseconds. */
const rfc3339 = (ms: number): string => new Date(ms).toISOString();
