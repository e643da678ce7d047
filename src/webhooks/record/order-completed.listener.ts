import { Injectable } from '@nestjs/common';
import { OnOrderCompleted, type OrderCompleted, SharesTransaction } from '../../orders/order-completed.event.js';
import { NOTIFY_ORDER_COMPLETION, notificationBody } from '../../protocol/notification.js';
import { WebhookRecorder } from './webhook.recorder.js';

/** Writes the webhook in the order's transaction: both are committed or neither is. */
@Injectable()
export class OrderCompletedListener {
  constructor(private readonly recorder: WebhookRecorder) {}

  @OnOrderCompleted()
  @SharesTransaction()
  async record({ order, clientId, ownerId, notifyUrl, manager, requestId }: OrderCompleted): Promise<void> {
    await this.recorder.record(manager, {
      referenceId: order.key,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId,
      ownerId,
      notifyUrl,
      body: notificationBody(NOTIFY_ORDER_COMPLETION, order),
      resendOf: null,
      requestId,
    });
  }
}
