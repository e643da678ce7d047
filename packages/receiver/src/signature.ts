import { createHmac } from 'node:crypto';

/**
 * `X-Signature` (specification 6.2): hex HMAC-SHA256, keyed with the client secret, over the X-Timestamp value,
 * the X-Nonce-Str value and the standard Base64 of the raw body, joined without separators. Usher signs with this
 * function too.
 */
export function signNotification(secret: string, timestamp: string, nonce: string, rawBody: Uint8Array): string {
  return createHmac('sha256', secret)
    .update(timestamp + nonce + Buffer.from(rawBody).toString('base64'))
    .digest('hex');
}
