/** The retry rules (specification 8). Times are in milliseconds. */
export interface RetryPolicy {
  timeoutMs: number;
  retryEveryMs: number;
  minIntervalMs: number;
  maxAttempts: number;
}

/** Specification 8; production accepts no other. */
export const SPECIFIED_RETRY: RetryPolicy = {
  timeoutMs: 30_000,
  retryEveryMs: 120_000,
  minIntervalMs: 30_000,
  maxAttempts: 5,
};

/** The time for signing and recording, in addition to the timeout, before an attempt counts as cut off. */
const RECORDING_MARGIN_MS = 10_000;

/** The first run at or after `timeMs`. Runs take place at every multiple of `everyMs` since 1970. */
export const runAt = (everyMs: number, timeMs: number): number => Math.ceil(timeMs / everyMs) * everyMs;

/** The first retry run at or after `timeMs`. By default retry runs take place every even minute (UTC). */
export const retryRunAt = ({ retryEveryMs }: RetryPolicy, timeMs: number): number => runAt(retryEveryMs, timeMs);

/** When the next attempt is due after a failed one, or null if that was the last attempt. */
export function nextAttemptAt(policy: RetryPolicy, attemptNumber: number, endedAtMs: number): number | null {
  return attemptNumber >= policy.maxAttempts ? null : retryRunAt(policy, endedAtMs + policy.minIntervalMs);
}

/** The end of a claim's lease: the first retry run that is a full interval after the latest possible end of the attempt. */
export function leaseUntil(policy: RetryPolicy, claimedAtMs: number): number {
  return retryRunAt(policy, claimedAtMs + policy.timeoutMs + RECORDING_MARGIN_MS + policy.minIntervalMs);
}
