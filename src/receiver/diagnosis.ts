import { createHmac } from 'node:crypto';
import { signNotification } from '../protocol/signature.js';
import {
  header,
  InvalidNotificationError,
  type InvalidReason,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';

/** Which step of the verification differs, as far as it can be told from outside. */
export type DifferingStep = 'header' | 'timestamp' | 'body' | 'secret' | 'recipe';

export interface Diagnosis {
  reason: InvalidReason;
  differs: DifferingStep;
  /** For a person: what to look at. */
  hint: string;
}

interface Signed {
  timestamp: string;
  nonce: string;
  rawBody: Buffer;
  secret: string;
}

type Theory = [differs: DifferingStep, hint: string, signature: (signed: Signed) => string];

/** What would have made this signature. The first that does is what went wrong. */
const THEORIES: Theory[] = [
  [
    'body',
    'the body was parsed and written again on its way: the compact JSON of the same content holds. Verify the bytes as they came',
    (signed) => signatureOf({ ...signed, rawBody: compact(signed.rawBody) }),
  ],
  [
    'body',
    'white space was added to the body on its way: without it the signature holds',
    (signed) => signatureOf({ ...signed, rawBody: Buffer.from(signed.rawBody.toString().trim()) }),
  ],
  [
    'secret',
    'the secret has white space around it: without it the signature holds',
    (signed) => signatureOf({ ...signed, secret: signed.secret.trim() }),
  ],
  [
    'recipe',
    'the body was signed as it is; sign its Base64',
    ({ timestamp, nonce, rawBody, secret }) => hmac(secret, Buffer.concat([Buffer.from(timestamp + nonce), rawBody])),
  ],
  [
    'recipe',
    'the nonce was signed before the timestamp; the timestamp comes first',
    (signed) => signatureOf({ ...signed, timestamp: signed.nonce, nonce: signed.timestamp }),
  ],
  [
    'recipe',
    'URL-safe or unpadded Base64 was signed; use the standard one',
    ({ timestamp, nonce, rawBody, secret }) => hmac(secret, timestamp + nonce + rawBody.toString('base64url')),
  ],
  ['recipe', 'only the body was signed', ({ rawBody, secret }) => hmac(secret, rawBody)],
];

/** Null for a genuine notification; else which step differs. Options as {@link verifyNotification} takes them. */
export function diagnose(options: VerifyOptions): Diagnosis | null {
  try {
    verifyNotification(options);
    return null;
  } catch (error) {
    if (!(error instanceof InvalidNotificationError)) throw error;
    return diagnosisOf(error, options);
  }
}

function diagnosisOf({ reason, message }: InvalidNotificationError, options: VerifyOptions): Diagnosis {
  switch (reason) {
    case 'missing-header':
    case 'malformed-header':
      return { reason, differs: 'header', hint: message };
    case 'too-old':
      return { reason, differs: 'timestamp', hint: `${message}: ${offset(options)}` };
    case 'malformed-body':
      return { reason, differs: 'body', hint: message };
    default:
      return { reason, ...differenceOf(options) };
  }
}

function differenceOf(options: VerifyOptions): Omit<Diagnosis, 'reason'> {
  const signed = signedParts(options);
  const given = [header(options.headers, 'X-Signature'), header(options.headers, 'X-Signature-Next')];
  const theory = THEORIES.find(([, , signature]) => given.includes(signature(signed)));
  if (theory) return { differs: theory[0], hint: theory[1] };
  if (!signed.rawBody.equals(compact(signed.rawBody)))
    return { differs: 'body', hint: 'the body is not as Usher writes it (compact JSON): it was changed on its way' };
  return {
    differs: 'secret',
    hint: 'the headers and the body look as Usher makes them, so most likely the secret is another client’s or an old one',
  };
}

const signedParts = ({ headers, rawBody, secret }: VerifyOptions): Signed => ({
  timestamp: header(headers, 'X-Timestamp') ?? '',
  nonce: header(headers, 'X-Nonce-Str') ?? '',
  rawBody: Buffer.from(rawBody as Uint8Array),
  secret,
});

const signatureOf = ({ secret, timestamp, nonce, rawBody }: Signed): string =>
  signNotification(secret, timestamp, nonce, rawBody);

const hmac = (secret: string, message: string | Buffer): string =>
  createHmac('sha256', secret).update(message).digest('hex');

function compact(rawBody: Buffer): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(rawBody.toString())));
  } catch {
    return rawBody;
  }
}

function offset({ headers, now = Date.now() }: VerifyOptions): string {
  const seconds = Math.round(now / 1_000 - Number(header(headers, 'X-Timestamp')));
  return seconds > 0 ? `it is ${seconds} s old` : `it lies ${-seconds} s ahead of this clock`;
}
