import { Injectable, Module, Optional } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import { validated } from '../http/problem.js';
import { OnOrderCompleted, type OrderCompleted } from '../orders/order-completed.event.js';
import { NOTIFY_ORDER_COMPLETION } from '../protocol/notification.js';
import { newId } from '../values/identifier.js';
import { type FinalStatus, WebhookEnded } from '../webhooks/webhook-ended.event.js';
import type { WebhookView } from '../webhooks/webhook-view.js';
import { NotifyRequest, WebhookService } from '../webhooks/webhook.service.js';

/**
 * Replaces {@link WebhookService} in tests: validates and records the requests to notify and sends nothing. It ignores
 * transactions: a request stays in `requests` even if its transaction is rolled back.
 */
@Injectable()
export class RecordingWebhooks implements Pick<WebhookService, 'notify' | 'find'> {
  /** All requests in order, including repeated ones. */
  readonly requests: NotifyRequest[] = [];
  private views: WebhookView[] = [];

  constructor(@Optional() private readonly emitter?: EventEmitter2) {}

  /** Like the real service: a reference that is PENDING or SUCCESS gets no second webhook. */
  notify(request: NotifyRequest, _manager?: EntityManager): Promise<WebhookView> {
    const checked = validated(NotifyRequest, request);
    this.requests.push(checked);
    const live = this.views.find(
      ({ referenceId, status }) => referenceId === checked.referenceId && status !== 'FAILED',
    );
    return Promise.resolve(live ?? this.add(checked));
  }

  /** Records the notification of an order that OrdersModule completed. */
  @OnOrderCompleted()
  async noteCompletion({ order, clientId, notifyUrl, manager }: OrderCompleted): Promise<void> {
    const data = { ...order };
    await this.notify({ referenceId: order.key, clientId, data, ...(notifyUrl !== null && { notifyUrl }) }, manager);
  }

  /** Newest first. */
  find(referenceId: string): Promise<WebhookView[]> {
    return Promise.resolve(this.views.filter((view) => view.referenceId === referenceId).reverse());
  }

  /** Ends the pending webhook of a reference and waits for the `@OnWebhookEnded()` listeners. */
  async end(reference: string, status: FinalStatus): Promise<void> {
    const pending = this.views.find((view) => view.referenceId === reference && view.status === 'PENDING');
    if (!pending) throw new Error(`${reference} has no PENDING webhook; call notify() first`);
    const attempts = status === 'SUCCESS' ? 1 : 5;
    const ended = { ...pending, status, attempts, nextAttemptAt: null, finishedAt: new Date().toISOString() };
    this.views = this.views.map((view) => (view === pending ? ended : view));
    const { id, referenceId, clientId, resendOf } = ended;
    await this.emitter?.emitAsync(
      WebhookEnded.NAME,
      new WebhookEnded(id, referenceId, clientId, status, attempts, resendOf),
    );
  }

  private add({ referenceId, clientId, notifyUrl = 'https://registered.example/notify' }: NotifyRequest): WebhookView {
    const now = new Date().toISOString();
    const view: WebhookView = {
      id: newId('sandbox', Date.now()),
      referenceId,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId,
      notifyUrl,
      status: 'PENDING',
      attempts: 0,
      nextAttemptAt: now,
      createdAt: now,
      finishedAt: null,
      resendOf: null,
    };
    this.views.push(view);
    return view;
  }
}

/** Use it instead of WebhookModule: WebhookService is then {@link RecordingWebhooks}. */
@Module({
  imports: [EventEmitterModule.forRoot({ global: false })],
  providers: [RecordingWebhooks, { provide: WebhookService, useExisting: RecordingWebhooks }],
  exports: [RecordingWebhooks, WebhookService],
})
export class RecordingWebhookModule {}
