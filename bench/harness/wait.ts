import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;
/** Longer than Usher waits between two attempts, in case the machine pauses and one is repeated. */
const TIMEOUT_MS = 300_000;

/** Polls until `check` returns a truthy value, and returns that value. */
export async function waitUntil<T>(what: string, check: () => Promise<T | undefined | false>): Promise<T> {
  for (const until = performance.now() + TIMEOUT_MS; performance.now() < until; await sleep(POLL_MS)) {
    const found = await check();
    if (found) return found;
  }
  throw new Error(`timed out after ${TIMEOUT_MS / 1_000} s: ${what}`);
}
