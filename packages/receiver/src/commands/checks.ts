import {
  attemptHeaders,
  NONCE_LENGTH,
  randomHex,
  sampleBody,
  type SigningKeys,
  TEST_MARK,
  timestampOf,
} from '../attempt.js';
import { isAccepted } from './forward.js';

export const CHECKS = ['valid', 'repeated', 'unicode', 'next-secret', 'altered', 'stale'] as const;
export type CheckName = (typeof CHECKS)[number];

export type Certification = Awaited<ReturnType<typeof certify>>;

/** A signed request to the receiver, without User-Agent. */
export interface TestRequest {
  headers: Record<string, string>;
  body: Buffer;
}

export interface Answer {
  status: number | null;
  durationMs: number;
  /** Why there is no status. */
  fault: string;
}

export interface Check {
  name: CheckName;
  /** What is special about it, after "a notification". */
  sent: string;
  expected: 'accept' | 'refuse';
  request: TestRequest;
  /** What to change where the receiver does the opposite. */
  remedy: string;
}

const HOUR_MS = 3_600_000;
/** Like newId() of Usher; an order key of this length needs no padding. */
const ID_LENGTH = 22;
const SECRET_LENGTH = 64;
const UNICODE = { bookingId: 'Amélie — 天使爱美丽 🎬', qrCode: 'QR\u2028“Ω”' };

/** The notifications of a certification at `now`. All are marked as tests, as those of `POST /webhooks/test` are. */
function certificationChecks(secret: string, now: number): Check[] {
  const keysOfClient: SigningKeys = { current: secret, next: null };
  const made = (body: Buffer, { keys = keysOfClient, attempt = 1, id = randomHex(ID_LENGTH), at = now } = {}) => {
    const headers = attemptHeaders(keys, { id, attempt, body }, timestampOf(at), randomHex(NONCE_LENGTH));
    return { headers: { ...headers, ...TEST_MARK }, body };
  };
  const body = (fields: object = {}): Buffer => sampleBody(randomHex(ID_LENGTH), now, fields);
  const [id, first] = [randomHex(ID_LENGTH), body()];
  const otherSecret = randomHex(SECRET_LENGTH);
  return [
    {
      name: 'valid',
      sent: 'as every order sends it',
      expected: 'accept',
      request: made(first, { id }),
      remedy:
        'compute the hex HMAC-SHA256 over X-Timestamp, X-Nonce-Str and the Base64 of the raw body, keyed with the client ' +
        'secret, and compare it with X-Signature',
    },
    {
      name: 'repeated',
      sent: 'of the same order once more, with a new timestamp, nonce and signature',
      expected: 'accept',
      request: made(first, { id, attempt: 2 }),
      remedy: 'answer 2xx to a notification that was processed before, and do nothing else: deduplicate on data.key',
    },
    {
      name: 'unicode',
      sent: 'with letters outside of ASCII',
      expected: 'accept',
      request: made(body(UNICODE)),
      remedy: 'verify over the bytes of the body as they arrived (UTF-8), before a parser or a conversion of the text',
    },
    {
      name: 'next-secret',
      sent: 'as during a change of the secret: X-Signature is of the other secret, X-Signature-Next of yours',
      expected: 'accept',
      request: made(body(), { keys: { current: otherSecret, next: secret } }),
      remedy: 'accept a notification if X-Signature or X-Signature-Next is valid',
    },
    {
      name: 'altered',
      sent: 'whose payableAmount was changed after it was signed',
      expected: 'refuse',
      request: altered(made(body())),
      remedy: 'verify the signature of the whole raw body before anything else, and answer 401 if it is wrong',
    },
    {
      name: 'stale',
      sent: 'that was signed an hour ago, with a valid signature',
      expected: 'refuse',
      request: made(body(), { at: now - HOUR_MS }),
      remedy: 'refuse a notification whose X-Timestamp differs from the present time by more than 300 seconds',
    },
  ];
}

function altered({ body, ...request }: TestRequest): TestRequest {
  const changed = body
    .toString()
    .replace(/"payableAmount":(\d+)/, (_, cents) => `"payableAmount":${Number(cents) + 1}`);
  return { ...request, body: Buffer.from(changed) };
}

/** Sends the notifications of a certification one after another, and says what the receiver did right and wrong. */
export async function certify(
  send: (request: TestRequest) => Promise<Answer>,
  notifyUrl: string,
  secret: string,
  now: number,
) {
  const checks: (Pick<Check, 'name' | 'sent' | 'expected'> & Verdict)[] = [];
  for (const check of certificationChecks(secret, now)) {
    const { name, sent, expected } = check;
    const unanswered = checks.find(({ responseStatus }) => responseStatus === null);
    const verdict = unanswered ? notSent(unanswered.name) : judge(check, await send(check.request));
    checks.push({ name, sent, expected, ...verdict });
  }
  return { passed: checks.every(({ passed }) => passed), notifyUrl, checks };
}

export interface Verdict {
  responseStatus: number | null;
  /** Null if it was not sent. */
  durationMs: number | null;
  passed: boolean;
  reason: string;
  remedy: string | null;
}

/** An earlier notification was not answered. */
const notSent = (unanswered: CheckName): Verdict => ({
  responseStatus: null,
  durationMs: null,
  passed: false,
  reason: `not sent, because the notification "${unanswered}" was not answered`,
  remedy: null,
});

function judge({ sent, expected, remedy }: Check, { status, durationMs, fault }: Answer): Verdict {
  const answer = { responseStatus: status, durationMs: Math.round(durationMs), passed: false };
  if (status === null) return { ...answer, reason: fault, remedy: UNANSWERED };
  const does = isAccepted(status) ? 'accept' : status >= 400 && status < 500 ? 'refuse' : null;
  const reason = `the receiver answered ${status}`;
  if (does === expected) return { ...answer, passed: true, reason, remedy: null };
  if (does !== null) return { ...answer, reason: `${reason} to a notification ${sent}`, remedy };
  return { ...answer, reason, remedy: status >= 500 ? FAULT : REDIRECT };
}

const UNANSWERED =
  'start the receiver, correct the Notify URL, and answer at once: process a notification after the answer';
const FAULT = 'find the error in the receiver’s log; answer 2xx to accept a notification, and 401 to refuse one';
const REDIRECT =
  'only 2xx accepts a notification, and redirects are not followed; set the Notify URL to the final address';
