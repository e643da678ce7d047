import type { Failure } from '../../audit/failure-counts.js';
import { addressGroup } from '../../http/exchange.js';
import { type Problem, tooManyRequests } from '../../http/problem.js';
import { type FailureLimit, TooManyFailures } from '../../limits/failure-limit.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';

/** Who tries to sign in, and from where. */
export interface SignInAttempt {
  name: string;
  address: string | null;
  /** For the audit; null if there is nobody with this name. */
  subject: string | null;
}

/** How a sign-in ended, for the metric. */
export type SignInResult = 'success' | 'failure' | 'blocked';

/**
 * Limits wrong passwords per name and address, and per address over all names. No password is hashed once a limit is reached,
 * because a hash is expensive.
 */
export class SignInLimit {
  constructor(
    private readonly perName: FailureLimit,
    private readonly perAddress: Limiter,
    private readonly count: (result: SignInResult) => void,
    private readonly record: (failure: Omit<Failure, 'action'>) => void,
  ) {}

  /** Runs `check` within the limits. Throws 429 if one is reached. */
  async run({ name, address, subject }: SignInAttempt, check: () => Promise<boolean>): Promise<boolean> {
    const group = addressGroup(address ?? '');
    const wait = this.perAddress.read(limitKey(group)).wait;
    try {
      if (wait > 0) throw new TooManyFailures(wait);
      const isRight = await this.perName.run(`${group} ${name}`, check);
      this.count(isRight ? 'success' : 'failure');
      if (isRight) return true;
      this.record({ subject, address, isBlocked: false });
      this.perAddress.count(limitKey(group));
      return false;
    } catch (error) {
      if (!(error instanceof TooManyFailures)) throw error;
      this.count('blocked');
      this.record({ subject, address, isBlocked: true });
      throw tooManySignIns(error.waitSeconds);
    }
  }
}

export const tooManySignIns = (waitSeconds: number): Problem =>
  tooManyRequests(`Too many attempts. Try again in ${waitSeconds} seconds.`, waitSeconds);
