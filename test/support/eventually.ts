import { HANG_LIMIT_MS } from './hang-limit.js';

/** Shorter than a test's limit, so that the failure tells what was awaited. */
const TIMEOUT_MS = HANG_LIMIT_MS / 3;
const POLL_MS = 20;

/** Polls `check` until it returns a truthy value, and returns that value. An exception counts as not yet. */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
): Promise<Exclude<NonNullable<T>, false>> {
  const until = Date.now() + TIMEOUT_MS;
  for (let last: unknown; ;) {
    try {
      const found = await check();
      if (found) return found as Exclude<NonNullable<T>, false>;
    } catch (error) {
      last = error;
    }
    if (Date.now() > until) throw new Error(`timed out waiting until ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
