import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull } from 'typeorm';
import { type AuditChange, AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { isDuplicate } from '../../database/errors.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { conflict, notFound, type Problem, unprocessable } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { newId, requiredFlag } from '../../values/identifier.js';
import type { Account } from './account.entity.js';
import { type Guesser, Passwords } from './passwords.js';

export const nameOf = (name: string): string => name.toLowerCase();

/** The accounts of members or of operators. Their names are not case-sensitive. */
@Injectable()
export abstract class Accounts<T extends Account> {
  protected abstract readonly entity: new () => T;
  protected abstract readonly kind: 'member' | 'operator';
  protected abstract readonly maxNameLength: number;
  /** Each kind has its own, so that operators do not wait for members. */
  private readonly passwords: Passwords;

  constructor(
    @Inject(USHER_DATA_SOURCE) protected readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.passwords = new Passwords(options.databaseTimeoutMs);
  }

  /** 404 if there is no account with this name. */
  async get(name: string): Promise<T> {
    const account = await this.find(name);
    if (!account) throw this.unknown(name);
    return account;
  }

  async find(name: string): Promise<T | null> {
    if (!this.isName(name)) return null;
    return this.dataSource.manager.findOneBy<Account>(this.entity, { name: nameOf(name) }) as Promise<T | null>;
  }

  /** Hashes in any case, so that the time shows neither whether the account exists nor whether it is disabled. */
  async hasPassword(account: T | null, password: string, guesser: Guesser): Promise<boolean> {
    return this.passwords.isRight(password, account?.disabledAt === null ? account.passwordHash : null, guesser);
  }

  /** Whether the account is enabled and has the same password as when it was read. Locks its row until the transaction ends. */
  async lockUnchanged(manager: EntityManager, { id, passwordHash }: Account): Promise<boolean> {
    const where = { id, passwordHash, disabledAt: IsNull() };
    return (await manager.findOne<Account>(this.entity, { where, lock: { mode: 'pessimistic_write' } })) !== null;
  }

  /**
   * A disabled account cannot sign in. Disabling also ends its sessions, and the access that a member gave to applications.
   */
  async setDisabled(name: string, disabled: boolean, actor?: Actor): Promise<T> {
    const disabledAt = requiredFlag(disabled) ? await databaseNow(this.dataSource.manager) : null;
    return this.change(name, { disabledAt }, { action: `${this.kind}.${disabled ? 'disabled' : 'enabled'}`, actor });
  }

  /**
   * Also ends the sessions of the account, and the access that a member gave to applications. `confirmed`: the account whose
   * present password was given; 409 if it was disabled or got another password since then.
   */
  async setPassword(name: string, password: string, actor?: Actor, confirmed?: Account): Promise<T> {
    const passwordHash = await this.passwords.hash(password);
    const change: AuditChange = { action: `${this.kind}.password-set`, actor };
    // Not the password of a later change: whoever gets the account may begin a session with it.
    return { ...(await this.change(name, { passwordHash }, change, { confirmed })), passwordHash };
  }

  /** How the audit names an account. */
  protected abstract audited(account: Pick<Account, 'id' | 'name'>): Pick<AuditChange, 'subject' | 'detail'>;

  /** Ends the sessions of an account, and the access that it gave to applications. */
  protected abstract endAccess(manager: EntityManager, id: string): Promise<void>;

  protected checkName(name: string): void {
    if (this.isName(name)) return;
    throw unprocessable(`the name must be 1 to ${this.maxNameLength} printable ASCII characters without spaces`);
  }

  /** 409 if the name is taken, 422 if the password is invalid. `complete` adds the columns of the kind. */
  protected async add(
    { name, password }: { name: string; password: string },
    complete: (account: Account) => T,
    recorded: Pick<AuditChange, 'actor' | 'detail'>,
  ): Promise<T> {
    const passwordHash = await this.passwords.hash(password);
    return inTransaction(this.dataSource, async (manager) => {
      const createdAt = await databaseNow(manager);
      const id = newId(this.options.environment, createdAt);
      const account = complete({ id, name: nameOf(name), passwordHash, createdAt, disabledAt: null });
      await manager.insert<Account>(this.entity, account);
      await this.audit.record({ ...this.audited(account), action: `${this.kind}.created`, ...recorded }, manager);
      return account;
    }).catch((error: unknown) => {
      throw isDuplicate(error) ? this.taken(nameOf(name)) : error;
    });
  }

  protected taken(name: string): Problem {
    return conflict(`${this.kind} ${name} already exists`);
  }

  protected async change(
    name: string,
    columns: Partial<Account> | Partial<T>,
    change: AuditChange,
    { keepsAccess = false, confirmed }: { keepsAccess?: boolean; confirmed?: Account | undefined } = {},
  ): Promise<T> {
    const { id } = await this.get(name);
    await inTransaction(this.dataSource, async (manager) => {
      // The account first: a sign-in at the same moment waits for its row, and then fails.
      if (confirmed && !(await this.lockUnchanged(manager, confirmed)))
        throw conflict('your account was disabled or got another password meanwhile');
      await manager.update<Account>(this.entity, { id }, columns);
      if (!keepsAccess) await this.endAccess(manager, id);
      await this.audit.record({ ...this.audited({ id, name: nameOf(name) }), ...change }, manager);
    });
    return this.get(name);
  }

  protected unknown(name: string): Problem {
    return notFound(`there is no ${this.kind} ${String(name).slice(0, 200)}`);
  }

  /** Printable ASCII only, so that no two names look alike, and no database treats two names as equal. */
  private isName(name: string): boolean {
    return typeof name === 'string' && name.length <= this.maxNameLength && /^[\x21-\x7e]+$/.test(name);
  }
}
