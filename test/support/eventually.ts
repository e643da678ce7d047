import { HANG_LIMIT_MS } from './hang-limit.js';

/** Shorter than a test's limit, so that the failure tells what was awaited. */
const PATIENCE_MS = HANG_LIMIT_MS / 3;
const AGAIN_MS = 20;

/** Waits until `check` answers with something truthy and returns that; what `check` throws counts as not yet. */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
): Promise<Exclude<NonNullable<T>, false>> {
  const until = Date.now() + PATIENCE_MS;
  for (let last: unknown; ;) {
    try {
      const found = await check();
      if (found) return found as Exclude<NonNullable<T>, false>;
    } catch (error) {
      last = error;
    }
    if (Date.now() > until) throw new Error(`it never came to be: ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}
