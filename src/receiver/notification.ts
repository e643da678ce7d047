import type { CompletedOrderData } from '../protocol/notification.js';

/** The body of a notification (specification 2.3). Deduplicate on `data.key`: an order can be notified more than once. */
export interface Notification {
  eventType: 'NOTIFY_ORDER_COMPLETION';
  /** Only in a test notification from `POST /webhooks/test`. Its order does not exist. */
  test?: true;
  data: CompletedOrderData;
}
