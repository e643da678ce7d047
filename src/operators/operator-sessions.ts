import { createHmac } from 'node:crypto';
import { type DynamicModule, Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { AccountSessions, type BegunSession } from '../auth/sign-in/sessions.js';
import { type SignInLimit, SignInLimits } from '../auth/sign-in/sign-in.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { isSameText } from '../http/basic-credentials.js';
import { addressOf, type HttpRequest } from '../http/exchange.js';
import type { Credentials } from '../usher.options.js';
import { actor } from '../values/actor.js';
import { Operator, OperatorSession } from './operator.entity.js';
import { FIRST_OPERATOR, OperatorsService, subjectOf } from './operators.service.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

export const OPERATOR_IDLE_MS = 7_200_000;

export type SessionOwner = Pick<Operator, 'name' | 'role'>;

/** What an operator types, and the cookie by which the account may know the browser. */
interface SignInInput {
  name: string;
  password: string;
  known: string | null;
}

/** Signs operators in: those with a row, and the one of the settings. */
@Injectable()
export class OperatorSessions extends AccountSessions<OperatorSession, SessionOwner> {
  protected readonly kind = 'operator';
  private readonly limit: SignInLimit;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    audit: AuditLog,
    protected readonly accounts: OperatorsService,
    limits: SignInLimits,
    @Inject(FIRST_OPERATOR) private readonly first: Credentials,
  ) {
    super(dataSource, audit, OperatorSession, OPERATOR_IDLE_MS);
    this.limit = limits.of({
      people: 'Operators',
      limit: 'failures-of-operator-sign-in',
      metric: 'usher_operator_sign_ins_total',
      action: 'operator.authentication-failed',
    });
  }

  /** Null for a wrong name or password, and for a disabled operator. Throws 429. */
  async signIn(given: SignInInput, request: HttpRequest): Promise<BegunSession | null> {
    const operator = await this.operatorOf(given);
    return (await this.isRight(given, operator, request)) ? this.open(operator, request) : null;
  }

  /** Begins a session without checking a password. `operator`: null for the one of the settings. */
  async open(operator: Operator | null, request: HttpRequest): Promise<BegunSession | null> {
    const name = operator?.name ?? this.first.user;
    return this.begin(
      operator,
      this.holderOf(name, operator),
      (session, token) => ({
        ...session,
        operatorId: operator?.id ?? null,
        settingsMac: operator ? null : this.settingsMac(token),
      }),
      actor('operator', name, addressOf(request)),
    );
  }

  /** Whether this is the password of the operator with this name. It counts as a sign-in for the limits. */
  async confirm(given: SignInInput, request: HttpRequest): Promise<boolean> {
    return this.isRight(given, await this.operatorOf(given), request);
  }

  /** Hashes a wrong password in any case, see {@link OperatorsService.hasPassword}. */
  private isRight(given: SignInInput, operator: Operator | null, request: HttpRequest): Promise<boolean> {
    const { name, password } = given;
    const isFirst = name === this.first.user;
    const holder = this.holderOf(name, operator);
    const known = this.knownBy(given.known, holder);
    return this.limit.run(
      { name, request, subject: isFirst || operator ? holder.subject : null, known },
      async (guesser) =>
        (isFirst && isSameText(password, this.first.password)) ||
        this.accounts.hasPassword(operator, password, guesser),
    );
  }

  /** Null for the operator of the settings. */
  private async operatorOf({ name }: SignInInput): Promise<Operator | null> {
    return name === this.first.user ? null : this.accounts.find(name);
  }

  private holderOf(name: string, operator: Operator | null) {
    return { subject: subjectOf(name), secret: operator?.passwordHash ?? this.first.password };
  }

  protected async ownerOf({ operatorId, settingsMac }: OperatorSession, token: string): Promise<SessionOwner | null> {
    if (operatorId === null)
      return settingsMac === this.settingsMac(token) ? { name: this.first.user, role: 'operator' } : null;
    return this.dataSource.manager.findOne(Operator, {
      select: { name: true, role: true },
      where: { id: operatorId, disabledAt: IsNull() },
    });
  }

  private settingsMac(token: string): string {
    const { user, password } = this.first;
    return createHmac('sha256', token).update(`${user}\n${password}`).digest('base64url');
  }
}

/** The people who sign in to the console, for the server and the command line. An application that embeds Usher has none. */
@UsherNamedModule({})
export class OperatorsModule {
  /** `first`: the operator whom the settings name. */
  static with(first: Credentials): DynamicModule {
    return {
      module: OperatorsModule,
      global: true,
      providers: [{ provide: FIRST_OPERATOR, useValue: first }, OperatorsService, OperatorSessions],
      exports: [FIRST_OPERATOR, OperatorsService, OperatorSessions],
    };
  }
}
