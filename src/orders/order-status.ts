/** Where orders with a status belong. */
interface Status {
  /** What a completion makes of it: another status, the same one if it has happened, or null: it is a conflict. */
  complete: 'COMPLETED' | null;
  /** The list of orders that `status` selects. */
  list: 'pending' | 'completed';
  /** Whether its notification is shown with the order. */
  isNotified: boolean;
  /** Whether it is deleted when its retention is over. */
  expires: boolean;
}

/** All statuses of an order. PENDING is Usher's own; the specification has only COMPLETED (specification 3). */
export const ORDER_STATUSES = {
  PENDING: { complete: 'COMPLETED', list: 'pending', isNotified: false, expires: false },
  COMPLETED: { complete: 'COMPLETED', list: 'completed', isNotified: true, expires: true },
} as const satisfies Record<string, Status>;

export type OrderStatus = keyof typeof ORDER_STATUSES;

export const orderStatuses = Object.keys(ORDER_STATUSES) as [OrderStatus, ...OrderStatus[]];

/** What a completion does to an order with this status. */
export function effectOfCompletion(status: OrderStatus): 'change' | 'none' | 'conflict' {
  const { complete: next }: Status = ORDER_STATUSES[status];
  if (next === null) return 'conflict';
  return next === status ? 'none' : 'change';
}
