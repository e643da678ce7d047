import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Accounts } from '../auth/sign-in/accounts.js';
import { ConnectedApplications } from '../auth/authorize/connected-applications.js';
import type { Actor } from '../values/actor.js';
import { MAX_MEMBER_NAME_LENGTH, Member, MemberSession } from './member.entity.js';

/** The built-in members of the cinema. */
@Injectable()
export class MembersService extends Accounts<Member> {
  protected readonly entity = Member;
  protected readonly kind = 'member';
  protected readonly maxNameLength = MAX_MEMBER_NAME_LENGTH;
  @Inject(ConnectedApplications) private readonly applications: ConnectedApplications;

  /** 409 if the name is taken, 422 if the name or the password is invalid. */
  async create(name: string, password: string, actor?: Actor): Promise<Member> {
    this.checkName(name);
    return this.add({ name, password }, (member) => member, { actor });
  }

  /** All members, the oldest first. */
  list(): Promise<Member[]> {
    return this.dataSource.manager.find(Member, { order: { createdAt: 'ASC', id: 'ASC' } });
  }

  protected audited({ id, name }: Pick<Member, 'id' | 'name'>) {
    return { subject: `member:${id}`, detail: { name } };
  }

  protected async endAccess(manager: EntityManager, memberId: string): Promise<void> {
    await manager.delete(MemberSession, { memberId });
    await this.applications.withdrawAll(memberId, manager);
  }
}
