import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { ConnectedApplications } from '../auth/authorize/connected-applications.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction } from '../database/sql.js';
import { conflict } from '../http/problem.js';
import { Member, MemberSession } from '../members/member.entity.js';
import { MembersService } from '../members/members.service.js';
import type { Actor } from '../values/actor.js';
import { WebhookResend } from '../webhooks/undelivered/webhook-resend.entity.js';
import { type Erased, RowErasure } from './row-erasure.js';

interface ErasureOptions {
  /** The number of rows deleted so far. */
  onProgress?: (done: number) => void;
  /** For the audit. */
  actor?: Actor | undefined;
}

/**
 * Deletes a resource owner with everything that applications made for them: orders, webhooks, tokens, consents. The audit
 * keeps the id and how many rows were deleted.
 */
@Injectable()
export class MemberErasure {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly members: MembersService,
    private readonly applications: ConnectedApplications,
    private readonly rows: RowErasure,
    private readonly audit: AuditLog,
  ) {}

  /** A built-in member. 409 while the member is enabled, 404 if there is none with this name. */
  async erase(name: string, options: ErasureOptions = {}): Promise<Erased> {
    const member = await this.members.get(name);
    checkDisabled(member);
    return this.eraseOwner(member.id, options);
  }

  /** A resource owner of the application's own, by the id that its authenticator gives. */
  async eraseOwner(ownerId: string, { onProgress = () => undefined, actor }: ErasureOptions = {}): Promise<Erased> {
    const subject = `member:${ownerId}`;
    await this.audit.record({ action: 'member.erasure-started', subject, actor });
    const erased = await this.rows.erase({ ownerId }, () => this.deleteMember(ownerId), onProgress);
    await this.audit.record({ action: 'member.erased', subject, actor, detail: { ...erased } });
    return erased;
  }

  private async deleteMember(id: string): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const member = await manager.findOne(Member, { where: { id }, lock: { mode: 'pessimistic_write' } });
      if (member) checkDisabled(member);
      await this.applications.withdrawAll(id, manager);
      await manager.delete(WebhookResend, { ownerId: id });
      await manager.delete(MemberSession, { memberId: id });
      await manager.delete(Member, { id });
    });
  }
}

function checkDisabled({ name, disabledAt }: Member): void {
  if (disabledAt !== null) return;
  throw conflict(`member ${name} is enabled; disable them first with "usher member disable ${name}"`);
}
