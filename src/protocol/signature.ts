import { createHmac } from 'node:crypto';

/** `X-Nonce-Str` has 32 characters of [A-Za-z0-9] (specification 6.2). */
export const NONCE_LENGTH = 32;

/**
 * `X-Signature` (specification 6.2): hex HMAC-SHA256, keyed with the client secret, over the X-Timestamp value,
 * the X-Nonce-Str value and the standard Base64 of the raw body, joined without separators.
 */
export function signNotification(secret: string, timestamp: string, nonce: string, rawBody: Uint8Array): string {
  return createHmac('sha256', secret)
    .update(timestamp + nonce + Buffer.from(rawBody).toString('base64'))
    .digest('hex');
}

/** The signature headers. While a secret is being changed, `X-Signature-Next` is made with the new one. */
export function signatures(
  { current, next }: { current: string; next: string | null },
  timestamp: string,
  nonce: string,
  rawBody: Uint8Array,
): Record<string, string> {
  const headers = { 'X-Signature': signNotification(current, timestamp, nonce, rawBody) };
  return next === null
    ? headers
    : { ...headers, 'X-Signature-Next': signNotification(next, timestamp, nonce, rawBody) };
}
