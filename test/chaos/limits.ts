/** The retry times of a run, in milliseconds, with the same proportions as in the specification. */
export const LIMITS = { timeoutMs: 2_000, retryEveryMs: 4_000, minIntervalMs: 2_000, maxAttempts: 5 };

/** A claim without a recorded outcome lasts for timeout + 10 s + interval, and then until the next retry run. */
export const SHORTEST_LEASE_MS = LIMITS.timeoutMs + 10_000 + LIMITS.minIntervalMs;
export const LONGEST_LEASE_MS = SHORTEST_LEASE_MS + LIMITS.retryEveryMs;

/** Short times, and no limit that the load of the run itself would reach. */
export const RUN_SETTINGS = {
  WEBHOOK_TIMEOUT: `${LIMITS.timeoutMs}ms`,
  WEBHOOK_RETRY_EVERY: `${LIMITS.retryEveryMs}ms`,
  WEBHOOK_RETRY_MIN_INTERVAL: `${LIMITS.minIntervalMs}ms`,
  TOKEN_RATE_LIMIT: 'off',
  ORDER_RATE_LIMIT: 'off',
  WEBHOOK_PENDING_LIMIT: 'off',
};
