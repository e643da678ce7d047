import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, Repository } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import type { AuditAction } from '../audit/audit-event.entity.js';
import { ConnectedApplications } from '../auth/authorize/connected-applications.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction, isDuplicate } from '../database/sql.js';
import { conflict, notFound, type Problem, unprocessable } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { newId } from '../values/identifier.js';
import { Member, MemberSession } from './member.entity.js';
import { Passwords } from '../auth/sign-in/passwords.js';

/** Printable ASCII, so that no two names look alike or are equal to a database only. */
const NAME = /^[\x21-\x7e]{1,191}$/;

export const unknownMember = (name: string): Problem => notFound(`there is no member ${name.slice(0, 200)}`);

/** The built-in members of the cinema. Their names are not case-sensitive. */
@Injectable()
export class MembersService {
  private readonly members: Repository<Member>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly passwords: Passwords,
    private readonly applications: ConnectedApplications,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.members = dataSource.getRepository(Member);
  }

  /** 409 if the name is taken, 422 if the name or the password is invalid. */
  async create(name: string, password: string, actor?: Actor): Promise<Member> {
    if (!NAME.test(name)) throw unprocessable('the name must be 1 to 191 printable ASCII characters without spaces');
    const passwordHash = await this.passwords.hash(password);
    return inTransaction(this.dataSource, async (manager) => {
      const createdAt = await databaseNow(manager);
      const id = newId(this.options.environment, createdAt);
      const member = { id, name: nameOf(name), passwordHash, createdAt, disabledAt: null };
      await manager.insert(Member, member);
      await this.record('member.created', member, actor, manager);
      return member;
    }).catch((error: unknown) => {
      throw isDuplicate(error) ? conflict(`member ${nameOf(name)} already exists`) : error;
    });
  }

  /** All members, the oldest first. */
  list(): Promise<Member[]> {
    return this.members.find({ order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** 404 if there is no member with this name. */
  async get(name: string): Promise<Member> {
    const member = await this.find(name);
    if (!member) throw unknownMember(name);
    return member;
  }

  /** Null if there is no member with this name. */
  async find(name: string): Promise<Member | null> {
    return NAME.test(name) ? this.members.findOneBy({ name: nameOf(name) }) : null;
  }

  /** A disabled member cannot sign in. Disabling also ends their sessions and what applications got from them. */
  async setDisabled(name: string, disabled: boolean, actor?: Actor): Promise<Member> {
    const action = disabled ? 'member.disabled' : 'member.enabled';
    return this.change(name, { action, actor }, async (manager) => ({
      disabledAt: disabled ? await databaseNow(manager) : null,
    }));
  }

  /** Ends the sessions of the member too, and what applications got from them. */
  async setPassword(name: string, password: string, actor?: Actor): Promise<Member> {
    const passwordHash = await this.passwords.hash(password);
    return this.change(name, { action: 'member.password-set', actor }, () => Promise.resolve({ passwordHash }));
  }

  private async change(
    name: string,
    { action, actor }: { action: AuditAction; actor: Actor | undefined },
    changeOf: (manager: EntityManager) => Promise<Partial<Member>>,
  ): Promise<Member> {
    const { id } = await this.get(name);
    await inTransaction(this.dataSource, async (manager) => {
      // The member first: a sign-in at the same moment waits for its row, and then fails.
      await manager.update(Member, { id }, await changeOf(manager));
      await manager.delete(MemberSession, { memberId: id });
      await this.applications.withdrawAll(id, manager);
      await this.record(action, { id, name: nameOf(name) }, actor, manager);
    });
    return this.get(name);
  }

  private record(
    action: AuditAction,
    { id, name }: Pick<Member, 'id' | 'name'>,
    actor: Actor | undefined,
    manager: EntityManager,
  ): Promise<void> {
    return this.audit.record({ action, subject: `member:${id}`, actor, detail: { name } }, manager);
  }
}

const nameOf = (name: string): string => name.toLowerCase();
