import { type Notification, signNotification } from '../../packages/receiver/dist/index.js';

export { type CompletedOrderData, NOTIFY_ORDER_COMPLETION } from '../../packages/receiver/dist/index.js';

/** The kinds of events. Each has a schema and an example in webhooks/api/notification.schema.ts. */
export type EventType = Notification['eventType'];

/** The exact body of a notification. It is made once, stored, and sent unchanged in every attempt. */
export function notificationBody(eventType: EventType, data: object): string {
  return JSON.stringify({ eventType, data });
}

/** `X-Nonce-Str` has 32 characters of [A-Za-z0-9] (specification 6.2). */
export const NONCE_LENGTH = 32;

/** The signature headers. While a secret is being changed, `X-Signature-Next` is made with the new one. */
export function signatures(
  { current, next }: { current: string; next: string | null },
  timestamp: string,
  nonce: string,
  rawBody: Uint8Array,
): Record<string, string> {
  const headers = { 'X-Signature': signNotification(current, timestamp, nonce, rawBody) };
  return next === null
    ? headers
    : { ...headers, 'X-Signature-Next': signNotification(next, timestamp, nonce, rawBody) };
}
