import { randomAlphanumeric } from '../core/alphanumeric.js';
import { NONCE_LENGTH, signatures } from '../core/signature.js';
import { VERSION } from '../core/version.js';
import type { SignedRequest } from './notification-sender.js';
import type { SigningSecret } from './signing-secrets.js';

export interface Unsigned {
  id: string;
  attempt: number;
  url: string;
  body: Buffer;
}

/** Signed now, with a fresh timestamp and nonce (specification 6.2). */
export function signedRequest(secret: SigningSecret, { id, attempt, url, body }: Unsigned): SignedRequest {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const nonce = randomAlphanumeric(NONCE_LENGTH);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `Usher/${VERSION}`,
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    ...signatures(secret, timestamp, nonce, body),
    'X-Webhook-Id': id,
    'X-Webhook-Attempt': String(attempt),
  };
  return { url, headers, body };
}
