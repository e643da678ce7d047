/** The retry rules (specification 8). Times are in milliseconds. */
export interface RetryPolicy {
  /** Timeout of one attempt; default 30000 (30 s). */
  timeoutMs: number;
  /** Time between two retry runs; default 120000 (2 min). */
  retryEveryMs: number;
  /** Minimum time between two attempts of one notification; default 30000 (30 s). */
  minIntervalMs: number;
  /** Number of attempts, 1 to 5; default 5. */
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

/** A receiver's Retry-After can choose one of the next three possible retry runs, but no later one. */
const RUNS_TO_CHOOSE_FROM = 3;

/**
 * When the next attempt is due after a failed one, or null if that was the last attempt. `retryAfterMs` is what the
 * receiver asked for (0: nothing). It moves the attempt later, never to before the minimum interval has passed.
 */
export function nextAttemptAt(
  policy: RetryPolicy,
  attemptNumber: number,
  endedAtMs: number,
  retryAfterMs = 0,
): number | null {
  if (attemptNumber >= policy.maxAttempts) return null;
  const first = retryRunAt(policy, endedAtMs + policy.minIntervalMs);
  const last = first + (RUNS_TO_CHOOSE_FROM - 1) * policy.retryEveryMs;
  return Math.min(Math.max(first, retryRunAt(policy, endedAtMs + retryAfterMs)), last);
}

/** The longest time between the end of a failed attempt and the next one. */
export const longestWaitMs = ({ minIntervalMs, retryEveryMs }: RetryPolicy): number =>
  minIntervalMs + RUNS_TO_CHOOSE_FROM * retryEveryMs;

/** The least time between a claim and the end of its lease: a full interval after the latest possible end of the attempt. */
export const leaseMs = ({ timeoutMs, minIntervalMs }: RetryPolicy): number =>
  timeoutMs + RECORDING_MARGIN_MS + minIntervalMs;
