import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, MoreThan } from 'typeorm';
import { type AuditChange, AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { newToken } from '../../http/pages/form-token.js';
import { digestToken } from '../tokens/token.js';
import type { Account, Session } from './account.entity.js';
import type { Accounts } from './accounts.js';

/** A session ends this long after the sign-in in any case. */
export const ABSOLUTE_MS = 43_200_000;
/** A request extends the session only if that moves its end by so much. */
const EXTEND_BY_MS = 60_000;

/** The sessions of members or of operators. The browser holds a token; the table only its digest. */
@Injectable()
export abstract class Sessions<T extends Session, Owner> {
  protected abstract readonly entity: new () => T;
  protected abstract readonly accounts: Accounts<Account>;
  /** A session ends this long after its last request. */
  protected abstract readonly idleMs: number;

  constructor(
    @Inject(USHER_DATA_SOURCE) protected readonly dataSource: DataSource,
    private readonly audit: AuditLog,
  ) {}

  /** Who has this session; null if there is none, or not any more. `isUse`: the session is extended. */
  async find(token: string, isUse = true): Promise<Owner | null> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const where = { digest: digestToken(token), expiresAt: MoreThan(now) };
    const session = (await manager.findOneBy<Session>(this.entity, where)) as T | null;
    const owner = session && (await this.ownerOf(session, token));
    if (session && owner && isUse) await this.extend(session, now);
    return owner;
  }

  async end(token: string): Promise<void> {
    await this.dataSource.manager.delete<Session>(this.entity, { digest: digestToken(token) });
  }

  /**
   * The token of a new session. `account` is null if it has no row. Returns null if the account was disabled or got another
   * password meanwhile. `complete` adds the columns of the kind.
   */
  protected async begin(
    account: Account | null,
    complete: (session: Session, token: string) => T,
    change: AuditChange,
  ): Promise<string | null> {
    const token = newToken();
    const isBegun = await inTransaction(this.dataSource, async (manager) => {
      if (account && !(await this.accounts.lockUnchanged(manager, account))) return false;
      const createdAt = await databaseNow(manager);
      const session = { digest: digestToken(token), createdAt, expiresAt: createdAt + this.idleMs };
      await manager.insert<Session>(this.entity, complete(session, token));
      await this.audit.record(change, manager);
      return true;
    });
    return isBegun ? token : null;
  }

  /** Null if the owner was disabled. */
  protected abstract ownerOf(session: T, token: string): Promise<Owner | null>;

  private async extend({ digest, createdAt, expiresAt }: Session, now: number): Promise<void> {
    const end = Math.min(now + this.idleMs, createdAt + ABSOLUTE_MS);
    if (end - expiresAt < EXTEND_BY_MS) return;
    await this.dataSource.manager.update<Session>(this.entity, { digest }, { expiresAt: end });
  }
}
