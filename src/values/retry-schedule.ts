/** Specification 8, in milliseconds. */
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

/** What an attempt may take beyond its timeout (signing, recording) before it counts as cut off. */
const RECORDING_MARGIN_MS = 10_000;

/** The first run at or after `timeMs` of what runs at every whole multiple of `everyMs` since 1970. */
export const runAt = (everyMs: number, timeMs: number): number => Math.ceil(timeMs / everyMs) * everyMs;

/** The first retry run at or after `timeMs`: by default, runs take place every even minute (UTC). */
export const retryRunAt = ({ retryEveryMs }: RetryPolicy, timeMs: number): number => runAt(retryEveryMs, timeMs);

/** When a webhook whose attempt failed is due again, or null where that was the last attempt. */
export function nextAttemptAt(policy: RetryPolicy, attemptNumber: number, endedAtMs: number): number | null {
  return attemptNumber >= policy.maxAttempts ? null : retryRunAt(policy, endedAtMs + policy.minIntervalMs);
}

/** Until when a claim holds: a run so late that even an attempt that timed out is a full interval in the past. */
export function leaseUntil(policy: RetryPolicy, claimedAtMs: number): number {
  return retryRunAt(policy, claimedAtMs + policy.timeoutMs + RECORDING_MARGIN_MS + policy.minIntervalMs);
}
