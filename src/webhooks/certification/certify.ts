import { hidePrivateResponse } from '../api/client-view.js';
import type { NotificationSender } from '../transport/notification-sender.js';
import { failureOf, type Outcome } from '../transport/outcome.js';
import { certificationChecks, type Certification, type Check, type CheckResult } from './checks.js';

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
