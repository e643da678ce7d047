import type { Notification } from '../../packages/receiver/dist/index.js';

export { type CompletedOrderData, NOTIFY_ORDER_COMPLETION } from '../../packages/receiver/dist/index.js';

/** The kinds of events. Each has a schema and an example in webhooks/api/notification.schema.ts. */
export type EventType = Notification['eventType'];

/** The exact body of a notification. It is made once, stored, and sent unchanged in every attempt. */
export function notificationBody(eventType: EventType, data: object): string {
  return JSON.stringify({ eventType, data });
}
