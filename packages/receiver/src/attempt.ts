import { randomBytes } from 'node:crypto';
import { signNotification } from './signature.js';
import { type CompletedOrderData, NOTIFY_ORDER_COMPLETION } from './verify.js';

/** The secrets that sign: `next` makes X-Signature-Next while the secret is being changed, else it is null. */
export interface SigningKeys {
  current: string;
  next: string | null;
}

/** What identifies an attempt, and its body. */
export interface Attempt {
  id: string;
  attempt: number;
  body: Uint8Array;
}

/** `X-Nonce-Str` has 32 characters of [A-Za-z0-9] (specification 6.2). */
export const NONCE_LENGTH = 32;

/** The headers of an attempt (specification 6.2) except User-Agent. `timestamp` is in seconds. */
export const attemptHeaders = (
  keys: SigningKeys,
  { id, attempt, body }: Attempt,
  timestamp: string,
  nonce: string,
): Record<string, string> => ({
  'Content-Type': 'application/json',
  ...signatureHeaders(keys, timestamp, nonce, body),
  'X-Webhook-Id': id,
  'X-Webhook-Attempt': String(attempt),
});

/** Marks a request as a test. This header is not signed, but the field `test` of the body is. */
export const TEST_MARK = { 'X-Webhook-Test': 'true' };

/** The headers that a receiver verifies. */
export const signatureHeaders = (
  { current, next }: SigningKeys,
  timestamp: string,
  nonce: string,
  rawBody: Uint8Array,
): Record<string, string> => ({
  'X-Timestamp': timestamp,
  'X-Nonce-Str': nonce,
  'X-Signature': signNotification(current, timestamp, nonce, rawBody),
  ...(next !== null && { 'X-Signature-Next': signNotification(next, timestamp, nonce, rawBody) }),
});

/** Unix time in seconds, as X-Timestamp has it. */
export const timestampOf = (ms: number): string => String(Math.floor(ms / 1_000));

/** Random lower-case hex digits, for a nonce, an id or a secret. `length` is even. */
export const randomHex = (length: number): string => randomBytes(length / 2).toString('hex');

export const SAMPLE_ORDER: CompletedOrderData = {
  key: 'TW92aWVPcmRlcjpzMGtUM2FWYjlRNHhMMm1OOHBSN2NZ',
  bookingId: 'BK-1',
  transactionId: 'TX-1',
  currencyCode: 'MYR',
  totalAmount: 4200,
  bookingAmount: 200,
  payableAmount: 4300,
  status: 'COMPLETED',
  qrCode: 'QR-1',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUpdatedAt: '2026-01-01T00:00:05.000Z',
};

/** The body of a test notification, whose order does not exist. `fields` replace those of the sample. */
export function sampleBody(orderId: string, now: number, fields: object = {}): Buffer {
  const at = new Date(now).toISOString();
  const key = Buffer.from(`MovieOrder:${orderId}`).toString('base64');
  const data = { ...SAMPLE_ORDER, key, createdAt: at, lastUpdatedAt: at, ...fields };
  return Buffer.from(JSON.stringify({ eventType: NOTIFY_ORDER_COMPLETION, test: true, data }));
}
