import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import type { HttpResponse } from '../http/exchange.js';
import { Cookies, digestOf, newToken } from '../http/pages/form-token.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import type { BrowserRequest, ResourceOwner, ResourceOwnerAuthenticator, SignIn } from '../values/resource-owner.js';
import { Member, MemberSession } from './member.entity.js';

/** A session ends this long after its last request, … */
export const IDLE_MS = 1_800_000;
/** … and this long after the sign-in in any case. */
export const ABSOLUTE_MS = 43_200_000;
/** A request extends the session only if that moves its end by so much. */
const EXTEND_BY_MS = 60_000;

const COOKIE = 'usher-session';

/** The sessions of the built-in members. The cookie holds a token; the table only its digest. */
@Injectable()
export class MemberSessions implements ResourceOwnerAuthenticator {
  readonly signOutUrl: string;
  private readonly base: string;
  private readonly basePath: string;
  private readonly cookies: Cookies;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) { publicUrl }: ResolvedOptions,
  ) {
    this.base = `${publicUrl ?? ''}/auth`;
    this.basePath = publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
    this.signOutUrl = `${this.base}/sign-out`;
    this.cookies = new Cookies(publicUrl?.startsWith('https:') ?? false);
  }

  async currentOwner({ headers }: BrowserRequest): Promise<ResourceOwner | null> {
    const token = this.cookies.read(headers, COOKIE);
    if (token === null) return null;
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const session = await manager.findOneBy(MemberSession, { digest: digestOf(token), expiresAt: MoreThan(now) });
    const member = session && (await manager.findOneBy(Member, { id: session.memberId, disabledAt: IsNull() }));
    if (!session || !member) return null;
    await this.extend(session, now);
    return { id: member.id, name: member.name };
  }

  /** The page asks for the password in any case. */
  signInUrl({ returnTo }: SignIn): string {
    const path = returnTo.slice(this.basePath.length);
    return `${this.base}/sign-in?${new URLSearchParams({ return_to: path })}`;
  }

  /**
   * Begins a session with a new token, and ends the browser's earlier one. Null if the member was disabled or got another
   * password meanwhile.
   */
  async begin(
    { id, passwordHash }: Member,
    request: BrowserRequest,
    response: HttpResponse,
    actor: Actor,
  ): Promise<boolean> {
    const token = newToken();
    const isBegun = await inTransaction(this.dataSource, async (manager) => {
      const where = { id, passwordHash, disabledAt: IsNull() };
      if (!(await manager.findOne(Member, { where, lock: { mode: 'pessimistic_write' } }))) return false;
      const createdAt = await databaseNow(manager);
      const expiresAt = createdAt + IDLE_MS;
      await manager.insert(MemberSession, { digest: digestOf(token), memberId: id, createdAt, expiresAt });
      await this.audit.record({ action: 'member.signed-in', subject: `member:${id}`, actor }, manager);
      return true;
    });
    if (!isBegun) return false;
    await this.forget(request);
    this.cookies.write(response, COOKIE, token);
    return true;
  }

  async end(request: BrowserRequest, response: HttpResponse): Promise<void> {
    await this.forget(request);
    this.cookies.write(response, COOKIE, null);
  }

  private async forget({ headers }: BrowserRequest): Promise<void> {
    const token = this.cookies.read(headers, COOKIE);
    if (token !== null) await this.dataSource.manager.delete(MemberSession, { digest: digestOf(token) });
  }

  private async extend({ digest, createdAt, expiresAt }: MemberSession, now: number): Promise<void> {
    const end = Math.min(now + IDLE_MS, createdAt + ABSOLUTE_MS);
    if (end - expiresAt < EXTEND_BY_MS) return;
    await this.dataSource.manager.update(MemberSession, { digest }, { expiresAt: end });
  }
}
