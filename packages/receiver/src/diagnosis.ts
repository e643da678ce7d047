import { createHmac } from 'node:crypto';
import { signNotification } from './signature.js';
import {
  header,
  InvalidNotificationError,
  type InvalidReason,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';

/** The step of the verification that differs, as far as the request shows it. */
export type DifferingStep = 'header' | 'timestamp' | 'body' | 'secret' | 'recipe';

export interface Diagnosis {
  reason: InvalidReason;
  differs: DifferingStep;
  /** What to check, as a text for people. */
  hint: string;
}

interface Signed {
  timestamp: string;
  nonce: string;
  rawBody: Buffer;
  secret: string;
}

type KnownMistake = [differs: DifferingStep, hint: string, signature: (signed: Signed) => string];

/** Common mistakes. The first one that gives the received signature is the cause. */
const KNOWN_MISTAKES: KnownMistake[] = [
  [
    'body',
    'the body was parsed and serialized again: the signature matches its compact JSON. Verify the received bytes',
    (signed) => signatureOf({ ...signed, rawBody: compact(signed.rawBody) }),
  ],
  [
    'body',
    'white space was added to the body: without it the signature matches. Verify the received bytes',
    (signed) => signatureOf({ ...signed, rawBody: Buffer.from(signed.rawBody.toString().trim()) }),
  ],
  [
    'secret',
    'the secret has white space around it: without it the signature matches. Remove the white space',
    (signed) => signatureOf({ ...signed, secret: signed.secret.trim() }),
  ],
  [
    'recipe',
    'the body itself was signed; sign its Base64',
    ({ timestamp, nonce, rawBody, secret }) => hmac(secret, Buffer.concat([Buffer.from(timestamp + nonce), rawBody])),
  ],
  [
    'recipe',
    'the nonce was signed before the timestamp; put the timestamp first',
    (signed) => signatureOf({ ...signed, timestamp: signed.nonce, nonce: signed.timestamp }),
  ],
  [
    'recipe',
    'URL-safe or unpadded Base64 was signed; use standard Base64',
    ({ timestamp, nonce, rawBody, secret }) => hmac(secret, timestamp + nonce + rawBody.toString('base64url')),
  ],
  [
    'recipe',
    'only the body was signed; sign timestamp, nonce and Base64 of the body',
    ({ rawBody, secret }) => hmac(secret, rawBody),
  ],
];

/** Returns null for a genuine notification, else the step that differs. Options as for {@link verifyNotification}. */
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
  const mistake = KNOWN_MISTAKES.find(([, , signature]) => given.includes(signature(signed)));
  if (mistake) return { differs: mistake[0], hint: mistake[1] };
  if (!signed.rawBody.equals(compact(signed.rawBody)))
    return {
      differs: 'body',
      hint: 'the body is not compact JSON as Usher sends it, so it was changed before the verification',
    };
  return {
    differs: 'secret',
    hint: 'the headers and the body look correct, so most likely the secret is an old one or belongs to another client',
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
  return seconds > 0 ? `it is ${seconds} s old` : `it is ${-seconds} s ahead of this clock`;
}
