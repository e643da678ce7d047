import { timingSafeEqual } from 'node:crypto';
import { signNotification } from './signature.js';

export const NOTIFY_ORDER_COMPLETION = 'NOTIFY_ORDER_COMPLETION' as const;

/** The order in a notification (specification 2.3). Amounts in cents, times in RFC 3339 UTC. */
export interface CompletedOrderData {
  key: string;
  bookingId: string;
  transactionId: string;
  currencyCode: string;
  totalAmount: number;
  bookingAmount: number;
  payableAmount: number;
  status: string;
  qrCode?: string;
  createdAt: string;
  lastUpdatedAt: string;
}

/**
 * The body of a notification (specification 2.3). Deduplicate on `data.key`: an order can be notified more than once. An
 * application that embeds Usher may send other `data`.
 */
export interface Notification<Data = CompletedOrderData> {
  eventType: typeof NOTIFY_ORDER_COMPLETION;
  /** Only in a test notification, such as one of `POST /webhooks/test`. Its order does not exist. */
  test?: true;
  data: Data;
}

/** A Fetch `Headers` object. Declared here, so that neither the types of Node nor those of browsers are needed. */
export interface FetchHeaders {
  get(name: string): string | null;
}

export interface VerifyOptions {
  /** The request's body exactly as received, before any parser. Nest has it only with `{ rawBody: true }`. */
  rawBody: Uint8Array | string;
  /** Node's `request.headers`, a Fetch `Headers`, or any record. Names may be in upper or lower case. */
  headers: FetchHeaders | Record<string, string | string[] | undefined>;
  /** The client secret. */
  secret: string;
  /** The maximum difference between X-Timestamp and now, in both directions. Default: 300 seconds. */
  toleranceSeconds?: number;
  /** Now, in milliseconds since 1970; for tests. */
  now?: number;
}

export type InvalidReason =
  'missing-header' | 'malformed-header' | 'too-old' | 'wrong-signature' | 'malformed-body' | 'replayed';

/** A request that is not a genuine notification. Answer it with 401 and do not act on it. */
export class InvalidNotificationError extends Error {
  constructor(
    readonly reason: InvalidReason,
    message: string,
  ) {
    super(message);
  }
}

export const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * Verifies a notification (specification 6.2) and returns it, parsed. While a secret is being changed, your secret may
 * match X-Signature or X-Signature-Next.
 * @throws InvalidNotificationError with the failed step as `reason`; TypeError or RangeError for invalid options
 */
export function verifyNotification<Data = CompletedOrderData>(options: VerifyOptions): Notification<Data> {
  checkOptions(options);
  const { headers, secret, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() } = options;
  const rawBody = Buffer.from(options.rawBody as Uint8Array);
  const timestamp = required(headers, 'X-Timestamp', /^\d{10}$/, 'it must have 10 digits');
  const nonce = required(headers, 'X-Nonce-Str', /^[A-Za-z0-9]{32}$/, 'it must have 32 letters and digits');
  const given = [
    required(headers, 'X-Signature', /^[0-9a-f]{64}$/, 'it must have 64 lower-case hex digits'),
    header(headers, 'X-Signature-Next'),
  ];
  const wanted = signNotification(secret, timestamp, nonce, rawBody);
  const matches = given.map((signature) => isSame(signature ?? '', wanted));
  if (!matches.includes(true)) throw new InvalidNotificationError('wrong-signature', 'the signature does not match');
  if (Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds) {
    throw new InvalidNotificationError(
      'too-old',
      `X-Timestamp differs from now by more than ${toleranceSeconds} seconds`,
    );
  }
  return parse(rawBody) as Notification<Data>;
}

/** With an empty secret or an invalid tolerance, forged or replayed requests would be accepted. */
function checkOptions({ rawBody, secret, toleranceSeconds = 0, now = 0 }: VerifyOptions): void {
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array))
    throw new TypeError(
      'rawBody must be the bytes or the text of the received body, not a parsed body; Nest needs { rawBody: true }',
    );
  if (typeof secret !== 'string' || secret === '') throw new TypeError('secret must be the client secret');
  if (!Number.isFinite(toleranceSeconds) || toleranceSeconds < 0)
    throw new RangeError('toleranceSeconds must be a number of seconds, 0 or more');
  if (!Number.isFinite(now)) throw new RangeError('now must be milliseconds since 1970');
}

function required(headers: VerifyOptions['headers'], name: string, form: RegExp, wanted: string): string {
  const value = header(headers, name);
  if (value === undefined) throw new InvalidNotificationError('missing-header', `${name} is missing`);
  if (!form.test(value)) throw new InvalidNotificationError('malformed-header', `${name} is malformed: ${wanted}`);
  return value;
}

export function header(headers: VerifyOptions['headers'], name: string): string | undefined {
  if (isFetchHeaders(headers)) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).filter(([key]) => key.toLowerCase() === name.toLowerCase());
  // Like HTTP, joins a header that is given more than once. The result has no valid form, so it is refused.
  const values = found.flatMap(([, value]) => value ?? []);
  return values.length === 0 ? undefined : values.join(', ');
}

/** Does not use `instanceof`, because a framework may have its own Headers class. */
const isFetchHeaders = (headers: VerifyOptions['headers']): headers is FetchHeaders =>
  typeof headers.get === 'function';

/** Compares in constant time. All signatures have the same length. */
function isSame(given: string, wanted: string): boolean {
  const left = Buffer.from(given);
  const right = Buffer.from(wanted);
  return left.length === right.length && timingSafeEqual(left, right);
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parse(rawBody: Buffer): object {
  let body: unknown;
  try {
    body = JSON.parse(UTF_8.decode(rawBody));
  } catch {
    throw new InvalidNotificationError('malformed-body', 'the body is not JSON in UTF-8');
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  throw new InvalidNotificationError('malformed-body', 'the body is not a JSON object');
}
