import { type Limiter, type LimitKey, limitKey } from './limiter.js';

export const TOO_MANY_FAILURES = 'too many failed authentication attempts; try again later';

interface Checks {
  running: number;
  /** Checks that wait for a reservation, the oldest first. They get the wait in seconds, or 0 with the reservation. */
  waiting: ((wait: number) => void)[];
}

/**
 * Limits failed checks of credentials per key, such as wrong passwords from one address. A check first reserves one of
 * the failures that are left, and a success gives it back. So requests at the same moment cannot try more secrets than
 * the limit allows. A check that finds all failures reserved waits for the others instead of being refused: correct
 * credentials are never refused because of their own number. What other processes counted is read during the check.
 */
export class FailureLimit {
  /** Only keys with a check in progress. */
  private readonly checks = new Map<LimitKey, Checks>();

  /** `next`: the limit under which a check runs once this one is reached, instead of being refused. */
  constructor(
    private readonly failures: Limiter,
    private readonly next?: FailureLimit,
  ) {}

  /**
   * Runs a check of `name` and returns its result. Null or false counts as a failure; an error does not. Throws `refusal`
   * without running the check, if the limit is reached; or after a success, if other processes have reached it. `nextName`: what
   * the next limit counts.
   */
  async run<T>(
    name: string,
    check: () => Promise<T>,
    refusal: (waitSeconds: number) => Error,
    nextName = name,
  ): Promise<T> {
    const key = limitKey(name);
    const refreshed = this.failures.refresh(key);
    const wait = await this.reserve(key);
    if (wait > 0 && this.next) return this.next.run(nextName, check, refusal);
    if (wait > 0) throw refusal(wait);
    let hasFailed = false;
    try {
      const result = await check();
      hasFailed = result === null || result === false;
      if (hasFailed) return result;
      await refreshed;
      const { wait } = this.failures.read(key);
      if (wait > 0 && !this.next) throw refusal(wait);
      return result;
    } finally {
      if (hasFailed) this.failures.count(key);
      this.end(key);
    }
  }

  /** The wait in seconds, or 0 with a reservation; as a promise if the check has to wait for others. */
  private reserve(key: LimitKey): number | Promise<number> {
    const checks = this.checks.get(key) ?? { running: 0, waiting: [] };
    this.checks.set(key, checks);
    if (checks.waiting.length === 0 && checks.running < this.failures.read(key).left) {
      checks.running += 1;
      return 0;
    }
    return this.turnOf(key, checks);
  }

  private turnOf(key: LimitKey, checks: Checks): Promise<number> {
    return new Promise((resolve) => {
      checks.waiting.push(resolve);
      this.admit(key, checks);
    });
  }

  private end(key: LimitKey): void {
    const checks = this.checks.get(key);
    if (!checks) return;
    checks.running -= 1;
    if (checks.waiting.length > 0) this.admit(key, checks);
    else if (checks.running === 0) this.checks.delete(key);
  }

  /** Lets waiting checks begin while failures are left, or refuses all of them once the limit is reached. */
  private admit(key: LimitKey, checks: Checks): void {
    const { left, wait } = this.failures.read(key);
    const admitted = wait > 0 ? checks.waiting.length : Math.max(0, left - checks.running);
    const begun = checks.waiting.splice(0, admitted);
    if (wait === 0) checks.running += begun.length;
    for (const begin of begun) begin(wait);
    if (checks.running === 0 && checks.waiting.length === 0) this.checks.delete(key);
  }
}
