import { Global, Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { type Failure, FailureCounts } from '../../audit/audit.module.js';
import { addressGroup, addressOf, type HttpRequest } from '../../http/exchange.js';
import { type Problem, tooManyRequests } from '../../http/problem.js';
import type { FailureLimit } from '../../limits/failure-limit.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { Passwords } from './passwords.js';
import { UsherNamedModule } from '../../telemetry/usher-named.js';

/** Who tries to sign in. */
interface SignInAttempt {
  name: string;
  request: HttpRequest;
  /** For the audit; null if there is nobody with this name. */
  subject: string | null;
}

/**
 * Limits wrong passwords per name and address, and per address over all names. No password is hashed once a limit is reached,
 * because a hash is expensive.
 */
export class SignInLimit {
  constructor(
    private readonly perName: FailureLimit,
    private readonly perAddress: Limiter,
    private readonly ended: (result: 'success' | 'failure' | 'blocked', attempt: SignInAttempt) => void,
  ) {}

  /** Runs `check` within the limits. Throws 429 if one is reached. */
  async run(attempt: SignInAttempt, check: () => Promise<boolean>): Promise<boolean> {
    const group = addressGroup(addressOf(attempt.request) ?? '');
    const refusal = (waitSeconds: number): Problem => {
      this.ended('blocked', attempt);
      return tooManySignIns(waitSeconds);
    };
    const { wait } = this.perAddress.read(limitKey(group));
    if (wait > 0) throw refusal(wait);
    const isRight = await this.perName.run(`${group} ${attempt.name.toLowerCase()}`, check, refusal);
    this.ended(isRight ? 'success' : 'failure', attempt);
    if (!isRight) this.perAddress.count(limitKey(group));
    return isRight;
  }
}

/** Who signs in at a page: how the limits, the metric and the audit name them. */
interface SignInKind {
  people: string;
  limit: string;
  metric: string;
  action: Failure['action'];
}

/** Makes the {@link SignInLimit} of each kind of people who sign in with a password. */
@Injectable()
export class SignInLimits {
  constructor(
    private readonly limits: Limits,
    private readonly counts: FailureCounts,
    private readonly registry: MetricsRegistry,
  ) {}

  /** Call it once for each kind, because it registers the metric. */
  of({ people, limit, metric, action }: SignInKind): SignInLimit {
    const signIns = new Counter({
      name: metric,
      help: `${people} who signed in (success), gave a wrong name or password (failure), or were refused by a limit (blocked).`,
      labelNames: ['result'],
      registers: [this.registry],
    });
    for (const result of ['success', 'failure', 'blocked']) signIns.inc({ result }, 0);
    return new SignInLimit(
      this.limits.failureLimit(limit),
      this.limits.addressLimiter(`${limit}-address`),
      (result, { subject, request }) => {
        signIns.inc({ result });
        if (result === 'success') return;
        this.counts.count({ action, subject, address: addressOf(request), isBlocked: result === 'blocked' });
      },
    );
  }
}

/** What members and operators share: both sign in with a password. Comes with UsherModule. */
@Global()
@UsherNamedModule({ providers: [Passwords, SignInLimits], exports: [Passwords, SignInLimits] })
export class SignInModule {}

export const tooManySignIns = (waitSeconds: number): Problem =>
  tooManyRequests(`Too many attempts. Try again in ${waitSeconds} seconds.`, waitSeconds);
