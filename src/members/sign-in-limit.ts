import { Inject, Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { FailureCounts } from '../audit/failure-counts.js';
import { addressLimit } from '../auth/client-authentication/client-failures.js';
import { addressGroup } from '../http/client-address.js';
import { Problem } from '../http/problem.js';
import { type FailureLimit, TooManyFailures } from '../limits/failure-limit.js';
import type { Limiter } from '../limits/limiter.js';
import { Limits } from '../limits/limits.module.js';
import { MetricsRegistry } from '../metrics/metrics.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';

/** Who tries to sign in, and from where. */
export interface SignInAttempt {
  name: string;
  address: string | null;
  /** The member's id, for the audit; null if there is no such member. */
  memberId: string | null;
}

class WrongPassword extends Error {}

/**
 * Limits wrong passwords per name and address, and per address over all names. No password is hashed once a limit is reached,
 * because a hash is expensive.
 */
@Injectable()
export class SignInLimit {
  private readonly perMember: FailureLimit;
  private readonly perAddress: Limiter;
  private readonly signIns: Counter<'result'>;

  constructor(
    limits: Limits,
    private readonly counts: FailureCounts,
    registry: MetricsRegistry,
    @Inject(USHER_OPTIONS) { authFailureLimit }: ResolvedOptions,
  ) {
    this.perMember = limits.failureLimit('failures-of-member', authFailureLimit);
    this.perAddress = limits.limiter('failures-of-member-address', addressLimit(authFailureLimit));
    this.signIns = new Counter({
      name: 'usher_sign_ins_total',
      help: 'Members who signed in (success), gave a wrong name or password (failure), or were refused by a limit (blocked).',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['success', 'failure', 'blocked']) this.signIns.inc({ result }, 0);
  }

  /** Runs `check` within the limits. Throws 429 if one is reached. */
  async run({ name, address, memberId }: SignInAttempt, check: () => Promise<boolean>): Promise<boolean> {
    const group = addressGroup(address ?? '');
    const wait = this.perAddress.read(group).wait;
    const fail = (isBlocked: boolean): void => {
      this.signIns.inc({ result: isBlocked ? 'blocked' : 'failure' });
      const subject = memberId === null ? null : `member:${memberId}`;
      this.counts.count({ action: 'member.authentication-failed', subject, address, isBlocked });
    };
    try {
      if (wait > 0) throw new TooManyFailures(wait);
      await this.perMember.run(`${group} ${name}`, () => required(check), isWrongPassword);
      this.signIns.inc({ result: 'success' });
      return true;
    } catch (error) {
      if (!isWrongPassword(error) && !(error instanceof TooManyFailures)) throw error;
      fail(error instanceof TooManyFailures);
      if (error instanceof TooManyFailures) throw slowDown(error.waitSeconds);
      this.perAddress.count(group);
      return false;
    }
  }
}

async function required(check: () => Promise<boolean>): Promise<void> {
  if (!(await check())) throw new WrongPassword();
}

const isWrongPassword = (error: unknown): boolean => error instanceof WrongPassword;

const slowDown = (waitSeconds: number): Problem =>
  new Problem(429, 'Too many attempts', `Try again in ${waitSeconds} seconds.`).with({
    'Retry-After': String(waitSeconds),
  });
