import { Inject, type INestApplicationContext, Injectable, Optional } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { TokenService } from '../auth/tokens/token.service.js';
import { ClientsService } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { AfterCommit, callersManager, type TransactionOptions } from '../database/sql.js';
import {
  EventsModule,
  type FinalStatus,
  OnOrderCompleted,
  type OrderCompleted,
  SharesTransaction,
  UsherEmitter,
  WebhookEnded,
} from '../events/events.js';
import { conflict, validated } from '../http/problem.js';
import { NOTIFY_ORDER_COMPLETION } from '../values/notification.js';
import { newId } from '../values/identifier.js';
import type { WebhookView } from '../webhooks/webhook-view.js';
import { UsherHealth } from '../webhooks/usher-health.js';
import {
  checkedBody,
  notFailed,
  type Notified,
  NotifyRequest,
  ofReference,
  WebhookService,
} from '../webhooks/webhook.service.js';
import { unknownWebhook, type WebhookDetails, WebhookFilter } from '../webhooks/webhook-queries.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/**
 * Replaces {@link WebhookService} in tests: records the requests to notify and sends nothing. It checks the form of a request, but
 * not whether its client exists or its Notify URL is allowed. It joins the
 * caller's transaction as the real service does; a request that was rolled back is in `rolledBack`.
 */
@Injectable()
export class RecordingWebhooks implements Pick<WebhookService, 'notify' | 'find' | 'list' | 'show' | 'resend'> {
  /** All requests in order, including repeated ones. */
  readonly requests: NotifyRequest[] = [];
  /** The requests whose transaction was rolled back. */
  readonly rolledBack: NotifyRequest[] = [];
  private views: WebhookView[] = [];

  constructor(
    @Optional() private readonly emitter?: UsherEmitter,
    @Optional() private readonly afterCommit?: AfterCommit,
    @Optional() @Inject(USHER_DATA_SOURCE) private readonly dataSource?: DataSource,
  ) {}

  /** Like the real service: a reference that is PENDING or SUCCESS gets no second webhook. */
  async notify(request: NotifyRequest, transaction: TransactionOptions = {}): Promise<Notified> {
    const checked = validated(NotifyRequest, request);
    checkedBody(checked.data);
    this.requests.push(checked);
    const live = this.liveOf(checked.referenceId);
    const { referenceId, clientId, ownerId = null, notifyUrl = 'https://registered.example/notify' } = checked;
    const webhook = live ?? this.add({ referenceId, clientId, ownerId, notifyUrl, resendOf: null });
    const undo = (): void => this.rollBack(checked, live ? null : webhook);
    const manager = this.dataSource && callersManager(this.dataSource, transaction);
    if (manager && this.afterCommit) this.afterCommit.do(manager, () => undefined, undo);
    return { webhook, isNew: !live };
  }

  /** Records the notification of an order that OrdersModule completed. */
  @OnOrderCompleted()
  @SharesTransaction(false)
  async noteCompletion({ order, clientId, manager, ...event }: OrderCompleted): Promise<void> {
    const notifyUrl = event.notifyUrl ?? undefined;
    const ownerId = event.ownerId ?? undefined;
    const requestId = event.requestId ?? undefined;
    const request = { referenceId: order.key, clientId, data: { ...order }, notifyUrl, ownerId, requestId };
    await this.notify(request, { manager });
  }

  /** Newest first. */
  async find(referenceId: string): Promise<WebhookView[]> {
    return this.list(ofReference(referenceId));
  }

  /** Newest first. */
  async list(filter: WebhookFilter = {}): Promise<WebhookView[]> {
    const { referenceId, status, limit = 100 } = validated(WebhookFilter, filter, 'query');
    const found = this.views.filter(
      (view) =>
        (referenceId === undefined || view.referenceId === referenceId) &&
        (status === undefined || view.status === status),
    );
    return found.reverse().slice(0, limit);
  }

  /** Without attempts and plan, because nothing is sent. 404 for an unknown id. */
  async show(id: string): Promise<WebhookDetails> {
    return { webhook: this.get(id), attempts: [], plan: null };
  }

  /** Like the real service: 409 unless the webhook is FAILED and its reference has no other that is PENDING or SUCCESS. */
  async resend(id: string): Promise<WebhookView> {
    const failed = this.get(id);
    if (failed.status !== 'FAILED') throw notFailed(failed);
    const live = this.liveOf(failed.referenceId);
    if (live) throw conflict(`webhook ${live.id} of the same reference is already ${live.status}`);
    const again = this.add({ ...failed, resendOf: id });
    failed.resentAs = again.id;
    return again;
  }

  /** Ends the pending webhook of a reference and waits for the `@OnWebhookEnded()` listeners. */
  async end(reference: string, status: FinalStatus): Promise<void> {
    const pending = this.views.find((view) => view.referenceId === reference && view.status === 'PENDING');
    if (!pending) throw new Error(`${reference} has no PENDING webhook; call notify() first`);
    const attemptCount = status === 'SUCCESS' ? 1 : 5;
    const ended = { ...pending, status, attemptCount, nextAttemptAt: null, finishedAt: new Date().toISOString() };
    this.views = this.views.map((view) => (view === pending ? ended : view));
    const { id, referenceId, clientId, resendOf } = ended;
    await this.emitter?.emitAndWait(
      WebhookEnded.NAME,
      new WebhookEnded(id, referenceId, clientId, status, attemptCount, resendOf),
    );
  }

  private liveOf(referenceId: string): WebhookView | undefined {
    return this.views.find((view) => view.referenceId === referenceId && view.status !== 'FAILED');
  }

  private get(id: string): WebhookView {
    const view = this.views.find((one) => one.id === id);
    if (!view) throw unknownWebhook(id);
    return view;
  }

  private rollBack(request: NotifyRequest, added: WebhookView | null): void {
    this.requests.splice(this.requests.indexOf(request), 1);
    this.views = this.views.filter((view) => view !== added);
    this.rolledBack.push(request);
  }

  private add(
    request: Pick<WebhookView, 'referenceId' | 'clientId' | 'ownerId' | 'notifyUrl' | 'resendOf'>,
  ): WebhookView {
    const now = new Date().toISOString();
    const view: WebhookView = {
      ...request,
      id: newId('sandbox', Date.now()),
      eventType: NOTIFY_ORDER_COMPLETION,
      status: 'PENDING',
      attemptCount: 0,
      nextAttemptAt: now,
      pausedSince: null,
      createdAt: now,
      finishedAt: null,
      resentAs: null,
    };
    this.views.push(view);
    return view;
  }
}

/** Use it instead of WebhookModule: WebhookService is then {@link RecordingWebhooks}. */
@UsherNamedModule({
  imports: [EventsModule],
  providers: [UsherHealth, RecordingWebhooks, { provide: WebhookService, useExisting: RecordingWebhooks }],
  exports: [UsherHealth, RecordingWebhooks, WebhookService],
})
export class RecordingWebhookModule {}

/** Issues a real access token, for routes with BearerGuard. The application must import AuthModule. */
export async function issueAccessToken(application: INestApplicationContext, clientId: string): Promise<string> {
  const client = await application.get(ClientsService, { strict: false }).get(clientId);
  const tokens = application.get(TokenService, { strict: false });
  return (await tokens.token(client, { grant_type: 'client_credentials' })).access_token;
}
