import { createHmac } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { digestOf, newToken } from '../http/pages/form-token.js';
import { type Credentials } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { Operator, type OperatorRole, OperatorSession } from './operator.entity.js';
import { FIRST_OPERATOR, subjectOf } from './operators.service.js';

/** A session ends this long after its last request, … */
export const OPERATOR_IDLE_MS = 7_200_000;
/** … and this long after the sign-in in any case. */
export const OPERATOR_ABSOLUTE_MS = 43_200_000;
/** A request extends the session only if that moves its end by so much. */
const EXTEND_BY_MS = 60_000;

export interface SessionOwner {
  name: string;
  role: OperatorRole;
}

/** The sessions of operators. The browser holds a token; the table only its digest. */
@Injectable()
export class OperatorSessions {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    @Inject(FIRST_OPERATOR) private readonly first: Credentials,
  ) {}

  /**
   * The token of a new session. `operator` is null for the operator of the settings. Returns null if the operator was
   * disabled or got another password meanwhile.
   */
  async begin(operator: Operator | null, actor: Actor): Promise<string | null> {
    const token = newToken();
    const isBegun = await inTransaction(this.dataSource, async (manager) => {
      if (operator) {
        const where = { id: operator.id, passwordHash: operator.passwordHash, disabledAt: IsNull() };
        if (!(await manager.findOne(Operator, { where, lock: { mode: 'pessimistic_write' } }))) return false;
      }
      const createdAt = await databaseNow(manager);
      await manager.insert(OperatorSession, {
        digest: digestOf(token),
        operatorId: operator?.id ?? null,
        settingsMac: operator ? null : this.settingsMac(token),
        createdAt,
        expiresAt: createdAt + OPERATOR_IDLE_MS,
      });
      const subject = subjectOf(operator?.name ?? this.first.user);
      await this.audit.record({ action: 'operator.signed-in', subject, actor }, manager);
      return true;
    });
    return isBegun ? token : null;
  }

  /** Who has this session; null if there is none, or not any more. `isUse`: the session is extended. */
  async find(token: string, isUse: boolean): Promise<SessionOwner | null> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const session = await manager.findOneBy(OperatorSession, { digest: digestOf(token), expiresAt: MoreThan(now) });
    const owner = session && (await this.ownerOf(session, token));
    if (!session || !owner) return null;
    if (isUse) await this.extend(session, now);
    return owner;
  }

  async end(token: string): Promise<void> {
    await this.dataSource.manager.delete(OperatorSession, { digest: digestOf(token) });
  }

  private async ownerOf({ operatorId, settingsMac }: OperatorSession, token: string): Promise<SessionOwner | null> {
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

  private async extend({ digest, createdAt, expiresAt }: OperatorSession, now: number): Promise<void> {
    const end = Math.min(now + OPERATOR_IDLE_MS, createdAt + OPERATOR_ABSOLUTE_MS);
    if (end - expiresAt < EXTEND_BY_MS) return;
    await this.dataSource.manager.update(OperatorSession, { digest }, { expiresAt: end });
  }
}
