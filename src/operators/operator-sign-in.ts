import { Inject, Injectable } from '@nestjs/common';
import { addressOf, type HttpRequest } from '../http/exchange.js';
import { isSameText } from '../http/basic-credentials.js';
import { Passwords } from '../auth/sign-in/passwords.js';
import type { SignInLimit } from '../auth/sign-in/sign-in-limit.js';
import { SignInLimits } from '../auth/sign-in/sign-in.module.js';
import type { Credentials } from '../usher.options.js';
import { actor } from '../values/actor.js';
import type { Operator } from './operator.entity.js';
import { OperatorSessions } from './operator-sessions.js';
import { FIRST_OPERATOR, OperatorsService, subjectOf } from './operators.service.js';

/** Signs operators in: those with a row, and the one of the settings. */
@Injectable()
export class OperatorSignIn {
  private readonly limit: SignInLimit;

  constructor(
    private readonly operators: OperatorsService,
    private readonly passwords: Passwords,
    private readonly sessions: OperatorSessions,
    @Inject(FIRST_OPERATOR) private readonly first: Credentials,
    limits: SignInLimits,
  ) {
    this.limit = limits.of({
      limit: 'failures-of-operator-sign-in',
      metric: {
        name: 'usher_operator_sign_ins_total',
        help: 'Operators who signed in (success), gave a wrong name or password (failure), or were refused by a limit (blocked).',
      },
      action: 'operator.authentication-failed',
    });
  }

  /** The token of a new session; null for a wrong name or password, and for a disabled operator. Throws 429. */
  async signIn(given: { name: string; password: string }, request: HttpRequest): Promise<string | null> {
    const isFirst = given.name === this.first.user;
    const operator = isFirst ? null : await this.operators.find(given.name);
    const name = isFirst || operator ? subjectOf(given.name) : null;
    if (!(await this.isRight(given, operator, name, request))) return null;
    return this.sessions.begin(operator, actor('operator', operator?.name ?? this.first.user, addressOf(request)));
  }

  /** Whether this is the password of the operator with this name. It counts as a sign-in for the limits. */
  async confirm(given: { name: string; password: string }, request: HttpRequest): Promise<boolean> {
    return this.isRight(given, await this.operators.find(given.name), subjectOf(given.name), request);
  }

  /** Hashes in any case, so that the time shows neither whether an operator exists nor whether they are disabled. */
  private isRight(
    { name, password }: { name: string; password: string },
    operator: Operator | null,
    subject: string | null,
    request: HttpRequest,
  ): Promise<boolean> {
    const attempt = { name: name.toLowerCase(), address: addressOf(request), subject };
    return this.limit.run(attempt, async () => {
      const hasRightHash = await this.passwords.isRight(password, operator?.passwordHash ?? null);
      if (operator === null) return name === this.first.user && isSameText(password, this.first.password);
      return hasRightHash && operator.disabledAt === null;
    });
  }
}
