export const NOTIFY_ORDER_COMPLETION = 'NOTIFY_ORDER_COMPLETION' as const;

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

/** The body of a notification (specification 2.3). Deduplicate on `data.key`: an order can be notified more than once. */
export interface Notification {
  eventType: typeof NOTIFY_ORDER_COMPLETION;
  /** Only in a test notification from `POST /webhooks/test`. Its order does not exist. */
  test?: true;
  data: CompletedOrderData;
}
