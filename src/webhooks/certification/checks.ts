import { z } from 'zod';
import { named } from '../../http/operation.js';
import { newId, randomAlphanumeric } from '../../values/identifier.js';
import { hidePrivateResponse } from '../api/client-view.js';
import { sampleBody, testRequest } from '../api/test-notifications.js';
import type { SigningSecret } from '../deliver/signing.js';
import type { NotificationSender, SignedRequest } from '../transport/notification-sender.js';
import { failureOf, type Outcome } from '../transport/outcome.js';

/** In the order in which they are sent. */
export const CHECKS = ['valid', 'repeated', 'unicode', 'next-secret', 'altered', 'stale'] as const;
export type CheckName = (typeof CHECKS)[number];

/** The body of `POST /sandbox/certifications`: nothing can be chosen. */
export const CertificationRequest = named('CertificationRequest', z.strictObject({}));

const CheckResult = z.object({
  name: z.enum(CHECKS),
  sent: z.string().describe('What is special about the notification.'),
  expected: z.enum(['accept', 'refuse']).describe('`accept`: a 2xx. `refuse`: a 4xx.'),
  responseStatus: z.int().nullable().describe('Null if there was no answer.'),
  durationMs: z.int().nullable().describe('Null if it was not sent.'),
  passed: z.boolean(),
  reason: z.string().describe('What the receiver did.'),
  remedy: z.string().nullable().describe('What to change. Null if nothing, or if it was not sent.'),
});
type CheckResult = z.infer<typeof CheckResult>;

export const Certification = named(
  'Certification',
  z.object({
    passed: z.boolean().describe('Whether the receiver did all of it right.'),
    notifyUrl: z.string(),
    checks: z.array(CheckResult),
  }),
);
export type Certification = z.infer<typeof Certification>;

/** One notification of a certification. `sent` says what is special about it, after "a notification". */
interface Check extends Pick<CheckResult, 'name' | 'sent' | 'expected'> {
  request: SignedRequest;
  /** What to change where the receiver does the opposite. */
  remedy: string;
}

const HOUR_MS = 3_600_000;
const SECRET_LENGTH = 43;
const UNICODE = { bookingId: 'Amélie — 天使爱美丽 🎬', qrCode: 'QR\u2028“Ω”' };

/** The notifications of a certification at `now`. All are marked as tests, as those of `POST /webhooks/test` are. */
function certificationChecks(url: string, secret: string, now: number): Check[] {
  const keys: SigningSecret = { current: secret, next: null };
  const made = (body: Buffer, more: { secret?: SigningSecret; attempt?: number; id?: string; at?: number } = {}) => {
    const { attempt = 1, id = newId('sandbox', now), at = now } = more;
    return testRequest(more.secret ?? keys, { id, attempt, url, body }, at);
  };
  const body = (fields: object = {}): Buffer => sampleBody('sandbox', now, fields);
  const [id, first] = [newId('sandbox', now), body()];
  const otherSecret = randomAlphanumeric(SECRET_LENGTH);
  return [
    {
      name: 'valid',
      sent: 'as every order sends it',
      expected: 'accept',
      request: made(first, { id }),
      remedy:
        'compute the hex HMAC-SHA256 over X-Timestamp, X-Nonce-Str and the Base64 of the raw body, keyed with the client ' +
        'secret, and compare it with X-Signature; "usher listen" shows the parts',
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
      request: made(body(), { secret: { current: otherSecret, next: secret } }),
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

function altered({ body, ...request }: SignedRequest): SignedRequest {
  const changed = body
    .toString()
    .replace(/"payableAmount":(\d+)/, (_, cents) => `"payableAmount":${Number(cents) + 1}`);
  return { ...request, body: Buffer.from(changed) };
}

/** Sends the notifications of a certification one after another, and says what the receiver did right and wrong. */
export async function certify(
  sender: Pick<NotificationSender, 'send'>,
  notifyUrl: string,
  secret: string,
  now: number,
): Promise<Certification> {
  const checks: CheckResult[] = [];
  let unanswered: Check | null = null;
  for (const check of certificationChecks(notifyUrl, secret, now)) {
    const outcome: Outcome | null = unanswered ? null : await sender.send(check.request);
    checks.push(resultOf(check, outcome, unanswered));
    if (outcome && !('status' in outcome)) unanswered = check;
  }
  return { passed: checks.every(({ passed }) => passed), notifyUrl, checks };
}

/** Without an outcome it was not sent, because another notification was not answered. */
function resultOf(check: Check, outcome: Outcome | null, unanswered: Check | null): CheckResult {
  const { name, sent, expected } = check;
  const responseStatus = outcome && 'status' in outcome ? outcome.status : null;
  const durationMs = outcome && Math.round(outcome.durationMs);
  const verdict = outcome ? judge(check, outcome) : notSent(unanswered?.name);
  return { name, sent, expected, responseStatus, durationMs, ...verdict };
}

type Verdict = Pick<CheckResult, 'passed' | 'reason' | 'remedy'>;

function judge(check: Check, outcome: Outcome): Verdict {
  if (!('status' in outcome)) return { passed: false, reason: reasonOf(outcome), remedy: UNANSWERED };
  const { status } = outcome;
  const does = outcome.kind === 'delivered' ? 'accept' : status >= 400 && status < 500 ? 'refuse' : null;
  const reason = `the receiver answered ${status}`;
  if (does === check.expected) return { passed: true, reason, remedy: null };
  if (does !== null)
    return { passed: false, reason: `${reason} to a notification ${check.sent}`, remedy: check.remedy };
  return { passed: false, reason, remedy: status >= 500 ? FAULT : REDIRECT };
}

const UNANSWERED =
  'start the receiver, correct the Notify URL, and answer at once: process a notification after the answer';
const FAULT = 'find the error in the receiver’s log; answer 2xx to accept a notification, and 401 to refuse one';
const REDIRECT = 'redirects are not followed and other answers are no 2xx; set the Notify URL to the final address';

/** A private address is not shown. */
function reasonOf(outcome: Outcome): string {
  const { error = null } = failureOf(outcome) ?? {};
  return hidePrivateResponse({ address: outcome.address, error }, 'sandbox').error ?? '';
}

const notSent = (unanswered = ''): Verdict => ({
  passed: false,
  reason: `not sent, because the notification "${unanswered}" was not answered`,
  remedy: null,
});
