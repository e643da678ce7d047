import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, Repository } from 'typeorm';
import { z } from 'zod';
import { ClientsService } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction, joinTransaction, type TransactionOptions } from '../database/sql.js';
import { conflict, notFound, unprocessable, validated } from '../http/problem.js';
import { REQUEST_ID } from '../http/request-id.js';
import { NOTIFY_ORDER_COMPLETION, notificationBody } from '../protocol/notification.js';
import { ID } from '../values/identifier.js';
import { WebhookRecorder } from './record/webhook.recorder.js';
import { type AttemptView, attemptView, ReferenceId, type WebhookView, webhookView } from './webhook-view.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from './webhook.entity.js';

/** The size of a `text` column in MySQL, in bytes. */
const BODY_LIMIT = 65_535;

export const NotifyRequest = z.strictObject({
  referenceId: ReferenceId,
  clientId: z.string().min(1),
  notifyUrl: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
  /** Shown in the log lines of the delivery. */
  requestId: z.string().regex(REQUEST_ID, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"').optional(),
});
/** What to notify a client of: `data` is sent, and `referenceId` identifies the notification. */
export type NotifyRequest = z.infer<typeof NotifyRequest>;

/** The webhook of a reference, and whether this request made it. */
export interface Notified {
  webhook: WebhookView;
  isNew: boolean;
}

/** A webhook and its attempts, the first one first. */
export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
}

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
   * Notifies a client that an order of another system is complete. With `manager` it joins the caller's transaction; without
   * it, a rollback of the caller's transaction does not remove the notification. A reference that is PENDING or SUCCESS
   * is not notified again: the answer is then its webhook, with `isNew` false.
   */
  async notify(request: NotifyRequest, transaction: TransactionOptions = {}): Promise<Notified> {
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
    const recorded = await joinTransaction(this.dataSource, transaction, (manager) =>
      this.recorder.record(manager, webhook),
    );
    return { webhook: webhookView(recorded.webhook), isNew: recorded.isNew };
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

  async show(id: string): Promise<WebhookDetails> {
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
}
