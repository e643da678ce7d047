import { compact, findEncoding, findMistake, type Mistake, type Signed } from './mistakes.js';
import { signatureSteps, type SignatureSteps } from './signature.js';
import {
  header,
  InvalidNotificationError,
  type InvalidReason,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';

export type { DifferingStep } from './mistakes.js';

/** Without the signature: a log with the valid signature of a forged request would help the forger. */
export type ReceivedSteps = Omit<SignatureSteps, 'signature'>;

export interface Fault extends Mistake {
  reason: InvalidReason;
}

/** Why a request is not a genuine notification. For the developer's log; never for the response. */
export interface Diagnosis extends Fault {
  /** What this receiver computed. Null if a header that is needed for it is missing. */
  steps: ReceivedSteps | null;
}

/**
 * Returns null for a genuine notification, else the step that differs. Options as for {@link verifyNotification}. For a wrong
 * signature it computes up to 2,000 others, which takes about 10 ms: call it where a forger cannot make it run often.
 */
export function diagnose(options: VerifyOptions): Diagnosis | null {
  const fault = faultOf(options);
  return fault && { ...fault, steps: receivedSteps(options) };
}

/** The same without the computed values. */
export function faultOf(options: VerifyOptions): Fault | null {
  try {
    verifyNotification(options);
    return null;
  } catch (error) {
    if (!(error instanceof InvalidNotificationError)) throw error;
    return { reason: error.reason, ...mistakeOf(error, options) };
  }
}

function mistakeOf({ reason, message }: InvalidNotificationError, options: VerifyOptions): Mistake {
  switch (reason) {
    case 'missing-header':
    case 'malformed-header':
      return malformed(message, options);
    case 'too-old':
      return { differs: 'timestamp', hint: `${message}: ${offset(options)}` };
    case 'malformed-body':
      return { differs: 'body', hint: message };
    default:
      return differenceOf(options);
  }
}

/** A header is missing or in another form: a signature that is right in Base64 or in upper case, a timestamp in milliseconds. */
function malformed(message: string, options: VerifyOptions): Mistake {
  if (/^\d{13}$/.test(header(options.headers, 'X-Timestamp') ?? ''))
    return { differs: 'timestamp', hint: `${message}; it is in milliseconds, send seconds` };
  const encoding = findEncoding(signedParts(options), header(options.headers, 'X-Signature'));
  return encoding ?? { differs: 'header', hint: message };
}

function differenceOf(options: VerifyOptions): Mistake {
  const signed = signedParts(options);
  const given = [header(options.headers, 'X-Signature'), header(options.headers, 'X-Signature-Next')];
  const mistake = findMistake(signed, given);
  if (mistake) return mistake;
  const text = Buffer.from(signed.rawBody).toString();
  if (text === '') return { differs: 'body', hint: 'the body is empty; something read it before the verification' };
  if (compact(text) !== text)
    return {
      differs: 'body',
      hint: 'the body is not compact JSON as Usher sends it, so it was changed before the verification',
    };
  return {
    differs: 'secret',
    hint:
      'the headers and the body look correct, so most likely the secret is an old one or belongs to another client; ' +
      'otherwise a value in the body was changed',
  };
}

/** Every value up to the bytes that are signed; null if X-Timestamp or X-Nonce-Str is missing. */
export function receivedSteps(options: VerifyOptions): ReceivedSteps | null {
  const { timestamp, nonce, rawBody, secret } = signedParts(options);
  if (timestamp === '' || nonce === '') return null;
  const { signature: _, ...steps } = signatureSteps(secret, timestamp, nonce, rawBody);
  return steps;
}

const signedParts = ({ headers, rawBody, secret }: VerifyOptions): Signed => ({
  timestamp: header(headers, 'X-Timestamp') ?? '',
  nonce: header(headers, 'X-Nonce-Str') ?? '',
  rawBody: Buffer.from(rawBody as Uint8Array),
  secret,
});

function offset({ headers, now = Date.now() }: VerifyOptions): string {
  const seconds = Math.round(now / 1_000 - Number(header(headers, 'X-Timestamp')));
  return seconds > 0 ? `it is ${seconds} s old` : `it is ${-seconds} s ahead of this clock`;
}
