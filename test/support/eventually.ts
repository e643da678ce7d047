import { HANG_LIMIT_MS } from './hang-limit.js';

/** Shorter than a test's limit, so that the failure tells what was awaited. */
const TIMEOUT_MS = HANG_LIMIT_MS / 3;
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 100;

/**
 * Polls `check` until it returns a truthy value, and returns that value. An exception counts as not yet. It polls less
 * often the longer it waits.
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
): Promise<Exclude<NonNullable<T>, false>> {
  const start = Date.now();
  for (let last: unknown; ;) {
    try {
      const found = await check();
      if (found) return found as Exclude<NonNullable<T>, false>;
    } catch (error) {
      last = error;
    }
    const waitedMs = Date.now() - start;
    if (waitedMs > TIMEOUT_MS) throw new Error(`timed out waiting until ${what}`, { cause: last });
    const pollMs = Math.min(Math.max(waitedMs / 20, MIN_POLL_MS), MAX_POLL_MS);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
