import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { FailureCounts } from '../../audit/audit.module.js';
import { addressGroup, addressOf, checkSingleHeaders, type HttpRequest, setActor } from '../../http/exchange.js';
import { hasCredentials, parseBasicHeader } from '../../http/basic-credentials.js';
import { type Problem, tooManyRequests, unauthorized } from '../../http/problem.js';
import { type FailureLimit, TOO_MANY_FAILURES } from '../../limits/failure-limit.js';
import { Limits } from '../../limits/limits.module.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { type Credentials, type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** Who has a user and a password in the settings: the operator for /ops, an order service for /internal. */
type Holder = 'operator' | 'internal';

const CHALLENGES: Record<Holder, [detail: string, challenge: string]> = {
  operator: [
    'send the operator credentials as Authorization: Basic <BASE64(OPS_USER:OPS_PASSWORD)>, with curl: -u "$OPS_USER:$OPS_PASSWORD"',
    'Basic realm="usher ops", charset="UTF-8"',
  ],
  internal: [
    'send the internal credentials as Authorization: Basic <BASE64(INTERNAL_USER:INTERNAL_PASSWORD)>, with curl: -u "$INTERNAL_USER:$INTERNAL_PASSWORD"',
    'Basic realm="usher internal", charset="UTF-8"',
  ],
};

/** Checks these passwords: limits guessing per address, and counts failures in the metrics and the audit. */
@Injectable()
export class FixedCredentials {
  private readonly limits: Record<Holder, FailureLimit>;
  private readonly failures: Counter<'credential'>;

  constructor(
    limits: Limits,
    private readonly counts: FailureCounts,
    registry: MetricsRegistry,
  ) {
    this.limits = {
      operator: limits.failureLimit('failures-of-operator'),
      internal: limits.failureLimit('failures-of-internal'),
    };
    this.failures = new Counter({
      name: 'usher_authentication_failures_total',
      help: 'Requests to /ops (operator, or metrics with METRICS_USER) and /internal (internal) with wrong credentials or refused after too many of them.',
      labelNames: ['credential'],
      registers: [registry],
    });
    for (const credential of ['operator', 'metrics', 'internal']) this.failures.inc({ credential }, 0);
  }

  /**
   * Remembers the actor of the request. Throws a `Problem`: 401, or 429 after too many failures. `credential`: the
   * label of a failure in the metrics.
   */
  async check(
    request: HttpRequest,
    holder: Holder,
    expected: Credentials | null,
    credential: Holder | 'metrics' = holder,
  ): Promise<void> {
    checkSingleHeaders(request);
    const { authorization } = request.headers;
    // A browser asks for the password only after a 401, so a request without any is no guess.
    if (authorization === undefined) throw refusal(holder);
    const address = addressOf(request);
    const count = (isBlocked: boolean): void => {
      this.failures.inc({ credential });
      this.counts.count({ action: `${holder}.authentication-failed`, subject: null, address, isBlocked });
    };
    const isRight = await this.limits[holder].run(
      addressGroup(address ?? ''),
      async () => hasCredentials(parseBasicHeader(authorization), expected),
      (waitSeconds) => {
        count(true);
        return tooManyFailures(waitSeconds);
      },
    );
    if (isRight) return setActor(request, holder, expected?.user ?? '');
    count(false);
    throw refusal(holder);
  }
}

export const refusal = (holder: Holder): Problem => unauthorized(...CHALLENGES[holder]);

export const tooManyFailures = (waitSeconds: number): Problem => tooManyRequests(TOO_MANY_FAILURES, waitSeconds);

/** Requires INTERNAL_USER and INTERNAL_PASSWORD over HTTP Basic, for an order service in another process. */
@Injectable()
export class InternalGuard implements CanActivate {
  static readonly security = 'internal';

  constructor(
    private readonly credentials: FixedCredentials,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HttpRequest>();
    await this.credentials.check(request, 'internal', this.options.internal);
    return true;
  }
}
