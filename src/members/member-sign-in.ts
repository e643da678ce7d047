import { Injectable } from '@nestjs/common';
import { addressOf } from '../audit/request-actor.js';
import type { HttpRequest, HttpResponse } from '../http/exchange.js';
import { actor } from '../values/actor.js';
import type { Member } from './member.entity.js';
import { MemberSessions } from './member-sessions.js';
import { MembersService } from './members.service.js';
import { Passwords } from './passwords.js';
import { SignInLimit } from './sign-in-limit.js';

/** Signs members in and out of a browser. */
@Injectable()
export class MemberSignIn {
  constructor(
    private readonly members: MembersService,
    private readonly passwords: Passwords,
    private readonly limit: SignInLimit,
    private readonly sessions: MemberSessions,
  ) {}

  /** False for a wrong name or password, and for a disabled member. Throws 429 after too many of them. */
  async signIn(given: { name: string; password: string }, request: HttpRequest, response: HttpResponse) {
    const member = await this.members.find(given.name);
    const attempt = { name: given.name.toLowerCase(), address: addressOf(request), memberId: member?.id ?? null };
    const isRight = await this.limit.run(attempt, () => this.isRight(given.password, member));
    if (!isRight || !member) return false;
    return this.sessions.begin(member, request, response, actor('owner', member.id, addressOf(request)));
  }

  async signOut(request: HttpRequest, response: HttpResponse): Promise<void> {
    await this.sessions.end(request, response);
  }

  /** Hashes in any case, so that the time shows neither whether a member exists nor whether it is disabled. */
  private async isRight(password: string, member: Member | null): Promise<boolean> {
    const isRight = await this.passwords.isRight(password, member?.passwordHash ?? null);
    return isRight && member?.disabledAt === null;
  }
}
