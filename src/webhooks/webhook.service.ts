import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, Repository } from 'typeorm';
import { z } from 'zod';
import { ClientsService } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction } from '../database/sql.js';
import { conflict, notFound, unprocessable, validated } from '../http/problem.js';
import { REQUEST_ID } from '../http/request-id.js';
import { NOTIFY_ORDER_COMPLETION, notificationBody } from '../protocol/notification.js';
import { ID } from '../values/identifier.js';
import { WebhookRecorder } from './record/webhook.recorder.js';
import { type AttemptView, attemptView, ReferenceId, type WebhookView, webhookView } from './webhook-view.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from './webhook.entity.js';

/** The size of a `text` column in MySQL, in bytes. */
const BODY_LIMIT = 65_535;

export const NotifyRequest = z.object({
  referenceId: ReferenceId,
  clientId: z.string().min(1),
  notifyUrl: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
  /** Shown in the log lines of the delivery. */
  requestId: z.string().regex(REQUEST_ID, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"').optional(),
});
export type NotifyRequest = z.infer<typeof NotifyRequest>;

export interface WebhookFilter {
  referenceId?: string | undefined;
  status?: WebhookStatus | undefined;
  limit?: number | undefined;
}

/** The operations on webhooks for other modules and for operators. Errors are problems of http/problem.ts. */
@Injectable()
export class WebhookService {
  private readonly webhooks: Repository<Webhook>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly recorder: WebhookRecorder,
    private readonly clients: ClientsService,
  ) {
    this.webhooks = dataSource.getRepository(Webhook);
  }

  /**
   * Notifies a client that an order of another system is complete. With `manager` it joins the caller's transaction,
   * which must be on Usher's data source. A reference that is PENDING or SUCCESS is not notified again.
   */
  async notify(request: NotifyRequest, manager?: EntityManager): Promise<WebhookView> {
    const { referenceId, clientId, notifyUrl = null, data, requestId = null } = validated(NotifyRequest, request);
    if (notifyUrl !== null) this.clients.checkNotifyUrlField(notifyUrl);
    const body = notificationBody(NOTIFY_ORDER_COMPLETION, data);
    if (Buffer.byteLength(body) > BODY_LIMIT)
      throw unprocessable(`the notification is too large; use at most ${BODY_LIMIT} bytes`);
    const webhook = {
      referenceId,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId,
      notifyUrl,
      body,
      resendOf: null,
      requestId,
    };
    const recorded = await this.within(manager, (inside) => this.recorder.record(inside, webhook));
    return webhookView(recorded.webhook);
  }

  /** The webhooks of one reference, newest first. */
  find(referenceId: string): Promise<WebhookView[]> {
    return this.list({ referenceId });
  }

  /** Newest first. */
  async list({ referenceId, status, limit = 100 }: WebhookFilter): Promise<WebhookView[]> {
    const where = { ...(referenceId !== undefined && { referenceId }), ...(status !== undefined && { status }) };
    const rows = await this.webhooks.find({ where, order: { id: 'DESC' }, take: limit });
    return rows.map(webhookView);
  }

  async show(id: string): Promise<{ webhook: WebhookView; attempts: AttemptView[] }> {
    const webhook = await this.get(this.webhooks.manager, id);
    const attempts = await this.webhooks.manager.find(WebhookAttempt, {
      where: { webhookId: id },
      order: { number: 'ASC' },
    });
    return { webhook: webhookView(webhook), attempts: attempts.map(attemptView) };
  }

  /**
   * Sends a FAILED notification again as a new webhook: to the order's own Notify URL if it had one, else to the client's
   * currently registered one. 409 for any other status (specification 6.3).
   */
  async resend(id: string, requestId: string | null = null): Promise<WebhookView> {
    return inTransaction(this.dataSource, async (manager) => {
      const failed = await this.get(manager, id);
      if (failed.status !== 'FAILED')
        throw conflict(`webhook ${id} is ${failed.status}; only a FAILED webhook can be sent again`);
      if (failed.purgedAt !== null)
        throw conflict(`webhook ${id} cannot be sent again: its body was deleted because of its age`);
      const { referenceId, eventType, clientId, body } = failed;
      const notifyUrl = failed.usesClientUrl ? null : failed.notifyUrl;
      const { webhook, isNew } = await this.recorder.record(manager, {
        referenceId,
        eventType,
        clientId,
        body,
        notifyUrl,
        resendOf: id,
        requestId,
      });
      if (!isNew) throw conflict(`webhook ${webhook.id} of the same reference is already ${webhook.status}`);
      return webhookView(webhook);
    });
  }

  private async get(manager: EntityManager, id: string): Promise<Webhook> {
    const webhook = ID.test(id) ? await manager.findOneBy(Webhook, { id }) : null;
    if (!webhook) throw notFound(`there is no webhook ${id.slice(0, 64)}`);
    return webhook;
  }

  private within<T>(manager: EntityManager | undefined, work: (manager: EntityManager) => Promise<T>): Promise<T> {
    if (!manager) return inTransaction(this.dataSource, work);
    if (manager.dataSource !== this.dataSource) {
      throw new Error(
        'notify() got an entity manager of another data source; pass one of Usher’s data source, or none',
      );
    }
    if (!manager.queryRunner?.isTransactionActive) {
      throw new Error(
        'notify() got an entity manager without an open transaction; pass one of an open transaction, or none',
      );
    }
    return work(manager);
  }
}
