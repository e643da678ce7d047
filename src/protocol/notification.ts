/** Specification 2.3: the order as a notification shows it. Amounts in cents, times in RFC 3339 UTC. */
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

/** The exact body of a notification: made once, stored, and sent byte for byte at every attempt. */
export function notificationBody(eventType: string, data: object): string {
  return JSON.stringify({ eventType, data });
}
