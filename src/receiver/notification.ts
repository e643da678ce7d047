import type { CompletedOrderData } from '../protocol/notification.js';

/** The body of a notification (specification 2.3). Deduplicate on `data.key`: the same order may be told twice. */
export interface Notification {
  eventType: 'NOTIFY_ORDER_COMPLETION';
  /** Only in a sample that `POST /webhooks/test` asked for: its order does not exist. */
  test?: true;
  data: CompletedOrderData;
}
