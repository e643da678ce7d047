import { createHmac } from 'node:crypto';

/** Every intermediate value of a signature (specification 6.2), to compare with those of another implementation. */
export interface SignatureSteps {
  timestamp: string;
  nonce: string;
  /** Length of the raw body in bytes. */
  bodyBytes: number;
  /** Standard Base64 of the raw body, with padding. */
  bodyBase64: string;
  /** X-Timestamp, X-Nonce-Str and {@link bodyBase64}, joined without separators. All of it is ASCII. */
  stringToSign: string;
  /** Length of {@link stringToSign} in bytes. */
  stringToSignBytes: number;
  /** The bytes of {@link stringToSign} in hex: what HMAC-SHA256 reads. */
  stringToSignHex: string;
  /** The 32 bytes of HMAC-SHA256 in lower-case hex: `X-Signature`. */
  signature: string;
}

/**
 * `X-Signature` (specification 6.2): hex HMAC-SHA256, keyed with the client secret, over the X-Timestamp value,
 * the X-Nonce-Str value and the standard Base64 of the raw body, joined without separators. Usher signs with this
 * function too.
 */
export function signNotification(secret: string, timestamp: string, nonce: string, rawBody: Uint8Array): string {
  return hmacHex(secret, timestamp + nonce + base64(rawBody));
}

/** Like {@link signNotification}, with every intermediate value. None of them contains the secret. */
export function signatureSteps(secret: string, timestamp: string, nonce: string, rawBody: Uint8Array): SignatureSteps {
  const bodyBase64 = base64(rawBody);
  const stringToSign = timestamp + nonce + bodyBase64;
  const bytes = Buffer.from(stringToSign);
  return {
    timestamp,
    nonce,
    bodyBytes: rawBody.length,
    bodyBase64,
    stringToSign,
    stringToSignBytes: bytes.length,
    stringToSignHex: bytes.toString('hex'),
    signature: hmacHex(secret, stringToSign),
  };
}

export const base64 = (rawBody: Uint8Array): string => Buffer.from(rawBody).toString('base64');

export const hmacHex = (secret: string | Uint8Array, message: string | Uint8Array): string =>
  createHmac('sha256', secret).update(message).digest('hex');
