type Headers = Record<string, string | string[] | undefined>;

/** The statuses with which a receiver may ask for time: RFC 6585 §4 and RFC 9110 §15.6.4. */
const ASKING_STATUSES = new Set([429, 503]);
const SECONDS = /^\d+$/;
/** More than this is never waited for. */
const MOST_MS = 86_400_000;
/** The form that RFC 9110 §5.6.7 requires of senders, and the one of RFC 850. Both name the time zone. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](?:\d\d){1,2} \d\d:\d\d:\d\d GMT$/;

/**
 * How long the Retry-After header of a response asks to wait, in milliseconds: seconds or an HTTP date (RFC 9110 §10.2.3).
 * 0 where the response does not ask, asks twice, or cannot be understood; at most a day. A date counts from the response's own Date
 * header where it has one, so that a wrong clock on either side changes nothing.
 */
export function retryAfterMs(status: number, headers: Headers, now = Date.now()): number {
  const asked = headers['retry-after'];
  if (!ASKING_STATUSES.has(status) || typeof asked !== 'string') return 0;
  const asksMs = SECONDS.test(asked) ? Number(asked) * 1_000 : (timeOf(asked) ?? 0) - (timeOf(headers.date) ?? now);
  return Math.min(Math.max(0, asksMs), MOST_MS);
}

function timeOf(date: string | string[] | undefined): number | null {
  const time = typeof date === 'string' && HTTP_DATE.test(date) ? Date.parse(date) : NaN;
  return Number.isNaN(time) ? null : time;
}
