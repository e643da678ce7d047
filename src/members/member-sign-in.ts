import { Injectable } from '@nestjs/common';
import { addressOf, type HttpRequest, type HttpResponse } from '../http/exchange.js';
import { Passwords } from '../auth/sign-in/passwords.js';
import type { SignInLimit } from '../auth/sign-in/sign-in-limit.js';
import { SignInLimits } from '../auth/sign-in/sign-in.module.js';
import { actor } from '../values/actor.js';
import type { Member } from './member.entity.js';
import { MemberSessions } from './member-sessions.js';
import { MembersService } from './members.service.js';

/** Signs members in and out of a browser. */
@Injectable()
export class MemberSignIn {
  private readonly limit: SignInLimit;

  constructor(
    private readonly members: MembersService,
    private readonly passwords: Passwords,
    private readonly sessions: MemberSessions,
    limits: SignInLimits,
  ) {
    this.limit = limits.of({
      limit: 'failures-of-member',
      metric: {
        name: 'usher_sign_ins_total',
        help: 'Members who signed in (success), gave a wrong name or password (failure), or were refused by a limit (blocked).',
      },
      action: 'member.authentication-failed',
    });
  }

  /** False for a wrong name or password, and for a disabled member. Throws 429 after too many of them. */
  async signIn(given: { name: string; password: string }, request: HttpRequest, response: HttpResponse) {
    const member = await this.members.find(given.name);
    const subject = member && `member:${member.id}`;
    const attempt = { name: given.name.toLowerCase(), address: addressOf(request), subject };
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
