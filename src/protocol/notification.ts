export { type CompletedOrderData, NOTIFY_ORDER_COMPLETION } from '#receiver';

/** The exact body of a notification. It is made once, stored, and sent unchanged in every attempt. */
export function notificationBody(eventType: string, data: object): string {
  return JSON.stringify({ eventType, data });
}
