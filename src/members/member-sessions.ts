import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { AccountSessions, KNOWN_MS } from '../auth/sign-in/sessions.js';
import { type SignInLimit, SignInLimits } from '../auth/sign-in/sign-in.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { addressOf, type HttpRequest, type HttpResponse } from '../http/exchange.js';
import { TokenCookie } from '../http/pages/form-tokens.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { actor } from '../values/actor.js';
import type { BrowserRequest, ResourceOwner, ResourceOwnerAuthenticator, SignIn } from '../values/resource-owner.js';
import { Member, MemberSession } from './member.entity.js';
import { MembersService } from './members.service.js';

export const IDLE_MS = 1_800_000;

/** Signs the built-in members in and out of a browser. */
@Injectable()
export class MemberSessions
  extends AccountSessions<MemberSession, ResourceOwner>
  implements ResourceOwnerAuthenticator
{
  readonly signOutUrl: string;
  protected readonly kind = 'member';
  private readonly base: string;
  private readonly basePath: string;
  private readonly cookie: TokenCookie;
  private readonly knownCookie: TokenCookie;
  private readonly limit: SignInLimit;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    audit: AuditLog,
    protected readonly accounts: MembersService,
    limits: SignInLimits,
    @Inject(USHER_OPTIONS) { publicUrl }: ResolvedOptions,
  ) {
    super(dataSource, audit, MemberSession, IDLE_MS);
    this.base = `${publicUrl ?? ''}/auth`;
    this.basePath = publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
    this.signOutUrl = `${this.base}/sign-out`;
    const isSecure = publicUrl?.startsWith('https:') ?? false;
    this.cookie = new TokenCookie('usher-session', isSecure);
    this.knownCookie = new TokenCookie('usher-known', isSecure);
    this.limit = limits.of({
      people: 'Members',
      limit: 'failures-of-member',
      metric: 'usher_sign_ins_total',
      action: 'member.authentication-failed',
    });
  }

  async currentOwner({ headers }: BrowserRequest): Promise<ResourceOwner | null> {
    const token = this.cookie.read(headers);
    return token === null ? null : this.find(token);
  }

  /** The sign-in page always asks for the password. */
  signInUrl({ returnTo }: SignIn): string {
    const path = returnTo.slice(this.basePath.length);
    return `${this.base}/sign-in?${new URLSearchParams({ return_to: path })}`;
  }

  /**
   * Begins a session with a new token, and ends the browser's earlier one. Returns how many tries failed since the member's
   * last sign-in; null for a wrong name or password, and for a disabled member. Throws 429 after too many of them.
   */
  async signIn(given: { name: string; password: string }, request: HttpRequest, response: HttpResponse) {
    const member = await this.accounts.find(given.name);
    const holder = member && { subject: `member:${member.id}`, secret: member.passwordHash };
    const known = holder && this.knownBy(this.knownCookie.read(request.headers), holder);
    const isRight = await this.limit.run(
      { name: given.name, request, subject: holder && holder.subject, known },
      (guesser) => this.accounts.hasPassword(member, given.password, guesser),
    );
    if (!isRight || !holder) return null;
    const by = actor('owner', member.id, addressOf(request));
    const begun = await this.begin(member, holder, (session) => ({ ...session, memberId: member.id }), by);
    if (begun === null) return null;
    await this.forget(request);
    this.cookie.write(response, begun.token);
    this.knownCookie.write(response, begun.known, KNOWN_MS);
    return begun.failures;
  }

  async signOut(request: HttpRequest, response: HttpResponse): Promise<void> {
    await this.forget(request);
    this.cookie.write(response, null);
  }

  protected async ownerOf({ memberId: id }: MemberSession): Promise<ResourceOwner | null> {
    return this.dataSource.manager.findOne(Member, {
      select: { id: true, name: true },
      where: { id, disabledAt: IsNull() },
    });
  }

  private async forget({ headers }: BrowserRequest): Promise<void> {
    const token = this.cookie.read(headers);
    if (token !== null) await this.end(token);
  }
}
