import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { AuditLog } from '../audit/audit.module.js';
import { ClientsService } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction, joinTransaction, type TransactionOptions } from '../database/sql.js';
import { conflict, fieldError, invalidFields, unprocessable, validated, type Problem } from '../http/problem.js';
import { REQUEST_ID } from '../http/exchange.js';
import { NOTIFY_ORDER_COMPLETION, notificationBody } from '../values/notification.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { OWNER_ID, WANTED_OWNER_ID } from '../values/resource-owner.js';
import { WebhookRecorder } from './record/webhook.recorder.js';
import { resendFailed } from './undelivered/resend-work.js';
import { findWebhook, listWebhooks, showWebhook, type WebhookDetails, WebhookFilter } from './webhook-queries.js';
import { ReferenceId, type WebhookView, webhookView } from './webhook-view.js';
import { DeliveredReference } from './webhook.entity.js';

/** The size of a `text` column in MySQL, in bytes. */
const BODY_LIMIT = 65_535;

export const NotifyRequest = z.strictObject({
  referenceId: ReferenceId,
  clientId: z.string().min(1),
  /** The resource owner whose token may read the notification too. */
  ownerId: z.string().regex(OWNER_ID, WANTED_OWNER_ID).optional(),
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

/** Who resends a webhook or many. */
export interface ResendOptions {
  /** Shown in the log lines of the deliveries. */
  requestId?: string | null;
  /** Who asks for it, for the audit. Default: the application, `host`. */
  actor?: Actor | undefined;
}

/** The operations on webhooks for other modules and for operators. Errors are problems of http/problem.ts. */
@Injectable()
export class WebhookService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly recorder: WebhookRecorder,
    private readonly clients: ClientsService,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Notifies a client that an order of another system is complete. It joins the caller's transaction, see
   * {@link TransactionOptions}; without one, a rollback does not remove the notification. A reference that is PENDING or SUCCESS
   * is not notified again: the answer is then its webhook, with `isNew` false.
   */
  async notify(request: NotifyRequest, transaction: TransactionOptions = {}): Promise<Notified> {
    const {
      data,
      notifyUrl = null,
      ownerId = null,
      requestId = null,
      ...key
    } = validated(NotifyRequest, request, 'body', (given) => this.clients.notifyUrlErrors(given.notifyUrl));
    const body = checkedBody(data);
    const eventType = NOTIFY_ORDER_COMPLETION;
    const webhook = { ...key, eventType, ownerId, notifyUrl, body, resendOf: null, requestId };
    const recorded = await joinTransaction(this.dataSource, transaction, (manager) =>
      this.recorder.record(manager, webhook),
    );
    return { webhook: webhookView(recorded.webhook), isNew: recorded.isNew };
  }

  /** The webhooks of one reference, newest first. */
  async find(referenceId: string): Promise<WebhookView[]> {
    return this.list(ofReference(referenceId));
  }

  /** Newest first. 400 for an invalid or unknown field of `filter`. */
  async list(filter: WebhookFilter = {}): Promise<WebhookView[]> {
    return listWebhooks(this.dataSource, validated(WebhookFilter, filter, 'query'));
  }

  /** One webhook with its attempts. 404 if there is none with this id. */
  show(id: string): Promise<WebhookDetails> {
    return showWebhook(this.dataSource, this.options.retry, id);
  }

  /**
   * Sends a FAILED notification again as a new webhook: to the order's own Notify URL if it had one, else to the client's
   * currently registered one. 409 for any other status (specification 6.3).
   */
  async resend(id: string, { requestId = null, actor }: ResendOptions = {}): Promise<WebhookView> {
    return inTransaction(this.dataSource, async (manager) => {
      const failed = await findWebhook(manager, id);
      const { status } = webhookView(failed);
      if (failed instanceof DeliveredReference || status !== 'FAILED') throw notFailed({ id, status });
      if (failed.purgedAt !== null)
        throw conflict(`webhook ${id} cannot be sent again: its body was deleted because of its age`);
      const { webhook, isNew } = await resendFailed(this.recorder, this.audit, manager, failed, { requestId, actor });
      const view = webhookView(webhook);
      if (!isNew) throw conflict(`webhook ${view.id} of the same reference is already ${view.status}`);
      return view;
    });
  }
}

/** 400 for data that has no JSON, 422 for too much of it. */
export function checkedBody(data: NotifyRequest['data']): string {
  let body: string;
  try {
    body = notificationBody(NOTIFY_ORDER_COMPLETION, data);
  } catch (error) {
    const [reason] = String(error).split('\n');
    const message = `cannot be written as JSON: ${reason}; use neither bigint nor circular references`;
    throw invalidFields([fieldError('body', ['data'], message)]);
  }
  if (Buffer.byteLength(body) > BODY_LIMIT)
    throw unprocessable(`the notification is too large; use at most ${BODY_LIMIT} bytes`);
  return body;
}

/** An undefined reference would otherwise list the webhooks of all. */
export const ofReference = (referenceId: string): WebhookFilter =>
  validated(WebhookFilter.extend({ referenceId: z.string() }), { referenceId }, 'query');

export const notFailed = ({ id, status }: Pick<WebhookView, 'id' | 'status'>): Problem =>
  conflict(`webhook ${id} is ${status}; only a FAILED webhook can be sent again`);
