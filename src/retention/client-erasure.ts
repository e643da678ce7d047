import { Inject, Injectable, Module } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Authorization, Consent } from '../auth/authorize/authorization.entity.js';
import { Client, ClientApplication, ClientSecret } from '../clients/client.entity.js';
import { unknownClient } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction } from '../database/sql.js';
import { conflict } from '../http/problem.js';
import { OrderCounter } from '../orders/list/order-counter.entity.js';
import type { Actor } from '../values/actor.js';
import { WebhookResend } from '../webhooks/undelivered/webhook-resend.entity.js';
import { ContactState, FailingHost } from '../webhooks/contact/failing-host.entity.js';
import { DeliveryFigure } from '../webhooks/figures/delivery-figure.entity.js';
import { WebhookModule } from '../webhooks/webhook.module.js';
import { MemberErasure } from './member-erasure.js';
import { type Erased, RowErasure, total } from './row-erasure.js';

interface ErasureOptions {
  /** The number of rows deleted so far. */
  onProgress?: (done: number) => void;
  /** For the audit. */
  actor?: Actor | undefined;
}

/**
 * Deletes a disabled client with everything that belongs to it, in short transactions. The client's own row goes last: after
 * an interruption, the same call finishes the work. The audit keeps the client's id and how many rows were deleted.
 */
@Injectable()
export class ClientErasure {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly rows: RowErasure,
    private readonly audit: AuditLog,
  ) {}

  /** 409 while the client is enabled, 404 if there is nothing of it. */
  async erase(clientId: string, { onProgress = () => undefined, actor }: ErasureOptions = {}): Promise<Erased> {
    // MySQL ignores trailing spaces when it compares ids. Figures of all clients have an empty one.
    if (clientId === '' || clientId.trim() !== clientId) throw unknownClient(clientId);
    const subject = `client:${clientId}`;
    const client = await this.dataSource.manager.findOneBy(Client, { id: clientId });
    if (client) {
      checkDisabled(client);
      await this.audit.record({ action: 'client.erasure-started', subject, actor });
    }
    let isDeleted = false;
    const deleteClient = async (): Promise<void> => {
      isDeleted = await this.deleteClient(clientId);
    };
    const erased = await this.rows.erase({ clientId }, deleteClient, onProgress);
    // Last: an attempt that was under way may have recorded a failing host and figures until now.
    for (const entity of [FailingHost, ContactState, DeliveryFigure])
      await this.dataSource.manager.delete(entity, { clientId });
    if (!isDeleted && total(erased) === 0) throw unknownClient(clientId);
    await this.audit.record({ action: 'client.erased', subject, actor, detail: { ...erased } });
    return erased;
  }

  private deleteClient(id: string): Promise<boolean> {
    return inTransaction(this.dataSource, async (manager) => {
      const client = await manager.findOne(Client, { where: { id }, lock: { mode: 'pessimistic_write' } });
      if (client) checkDisabled(client);
      for (const entity of OWNED) await manager.delete(entity, { clientId: id });
      await manager.delete(Client, { id });
      return client !== null;
    });
  }
}

function checkDisabled({ id, disabledAt }: Client): void {
  if (disabledAt !== null) return;
  throw conflict(`client ${id} is enabled; disable it first with "usher client disable ${id}"`);
}

/** What is deleted together with the client's row, because it is little. */
const OWNED = [Authorization, Consent, ClientApplication, ClientSecret, OrderCounter, WebhookResend];

/** Not part of UsherModule, because it needs WebhookModule. */
@Module({
  imports: [WebhookModule],
  providers: [RowErasure, ClientErasure, MemberErasure],
  exports: [ClientErasure, MemberErasure],
})
export class ErasureModule {}
