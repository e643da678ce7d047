/** The order in a notification (specification 2.3). Amounts in cents, times in RFC 3339 UTC. */
export interface CompletedOrderData {
  key: string;
  bookingId: string;
  transactionId: string;
  currencyCode: string;
  totalAmount: number;
  bookingAmount: number;
  payableAmount: number;
  status: string;
  qrCode?: string;
  createdAt: string;
  lastUpdatedAt: string;
}

export const NOTIFY_ORDER_COMPLETION = 'NOTIFY_ORDER_COMPLETION';

/** The exact body of a notification. It is made once, stored, and sent unchanged in every attempt. */
export function notificationBody(eventType: string, data: object): string {
  return JSON.stringify({ eventType, data });
}
