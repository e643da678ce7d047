import { Global, Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { type Failure, FailureCounts } from '../../audit/audit.module.js';
import { addressGroup, addressOf, type HttpRequest } from '../../http/exchange.js';
import { PageProblem } from '../../http/pages/page.js';
import type { Problem } from '../../http/problem.js';
import type { FailureLimit } from '../../limits/failure-limit.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import type { Guesser } from './passwords.js';
import { UsherNamedModule } from '../../telemetry/usher-named.js';

/** Wrong passwords for one account from browsers that have never signed in to it. */
const GUESSES = { count: 10, seconds: 3_600 };
/** The limit after {@link GUESSES}. */
const SLOW_GUESSES = { count: 1, seconds: 60 };
/** Wrong passwords for an account from one browser that it knows. Further ones count together for all browsers that it knows. */
const KNOWN_GUESSES = { count: 3, seconds: 3_600 };
/** Of an IPv6 address: a /48, which one customer can have. */
const NETWORK_GROUPS = 3;

export interface SignInAttempt {
  name: string;
  request: HttpRequest;
  /** For the audit; null if there is nobody with this name. */
  subject: string | null;
  /** The valid cookie of a browser that has signed in to the account before. */
  known: string | null;
}

/**
 * Limits wrong passwords per name and network, per account, and per network over all names. Browsers that have signed in to the
 * account before have a limit of their own. A few tries of each do not depend on the others, so that nobody else can lock it
 * out, not even with a stolen cookie.
 */
export class SignInLimit {
  constructor(
    private readonly perKnown: FailureLimit,
    private readonly perName: FailureLimit,
    private readonly perAccount: FailureLimit,
    private readonly perNetwork: Limiter,
    private readonly ended: (result: 'success' | 'failure' | 'blocked', attempt: SignInAttempt) => void,
  ) {}

  /** Runs `check` within the limits, which count the try before it. Throws 429 if one is reached. */
  async run(attempt: SignInAttempt, check: (guesser: Guesser) => Promise<boolean>): Promise<boolean> {
    const { known } = attempt;
    const name = attempt.name.toLowerCase();
    const network = addressGroup(addressOf(attempt.request) ?? '', NETWORK_GROUPS);
    const checkIt = () => check({ network, isKnown: known !== null });
    const refusal = (waitSeconds: number): Problem => {
      this.ended('blocked', attempt);
      return tooManySignIns(waitSeconds);
    };
    const guess = async () => {
      const wait = this.perNetwork.count(limitKey(network));
      const isRight = await this.perAccount.run(name, checkIt, refusal);
      // A right password is accepted even if others of the network have reached the limit.
      if (!isRight && wait > 0) throw refusal(wait);
      return isRight;
    };
    const isRight =
      known === null
        ? await this.perName.run(`${network} ${name}`, guess, refusal)
        : await this.perKnown.run(known, checkIt, refusal, `known ${name}`);
    this.ended(isRight ? 'success' : 'failure', attempt);
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
    const perName = this.limits.failureLimit(limit);
    return new SignInLimit(
      this.limits.failureLimit(`${limit}-known`, KNOWN_GUESSES, perName),
      perName,
      this.limits.failureLimit(`${limit}-account`, GUESSES, this.limits.failureLimit(`${limit}-slow`, SLOW_GUESSES)),
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
@UsherNamedModule({ providers: [SignInLimits], exports: [SignInLimits] })
export class SignInModule {}

export const tooManySignIns = (seconds: number): Problem =>
  new PageProblem(429, 'tooManySignIns', { seconds }).with({ 'Retry-After': String(seconds) });
