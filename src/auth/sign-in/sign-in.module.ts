import { Global, Inject, Injectable, Module } from '@nestjs/common';
import { Counter } from 'prom-client';
import { type Failure, FailureCounts } from '../../audit/failure-counts.js';
import { addressLimit } from '../client-authentication/client-authentication.js';
import { Limits } from '../../limits/limits.module.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { Passwords } from './passwords.js';
import { SignInLimit } from './sign-in-limit.js';

/** Who signs in at a page: how the limits, the metric and the audit name them. */
export interface SignInKind {
  limit: string;
  metric: { name: string; help: string };
  action: Failure['action'];
}

/** Makes the {@link SignInLimit} of each kind of people who sign in with a password. */
@Injectable()
export class SignInLimits {
  constructor(
    private readonly limits: Limits,
    private readonly counts: FailureCounts,
    private readonly registry: MetricsRegistry,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Call it once for each kind, because it registers the metric. */
  of({ limit, metric, action }: SignInKind): SignInLimit {
    const { authFailureLimit } = this.options;
    const signIns = new Counter({ ...metric, labelNames: ['result'], registers: [this.registry] });
    for (const result of ['success', 'failure', 'blocked']) signIns.inc({ result }, 0);
    return new SignInLimit(
      this.limits.failureLimit(limit, authFailureLimit),
      this.limits.limiter(`${limit}-address`, addressLimit(authFailureLimit)),
      (result) => signIns.inc({ result }),
      (failure) => this.counts.count({ action, ...failure }),
    );
  }
}

/** What members and operators share: both sign in with a password. Comes with UsherModule. */
@Global()
@Module({ providers: [Passwords, SignInLimits], exports: [Passwords, SignInLimits] })
export class SignInModule {}
