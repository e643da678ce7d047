import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../values/actor.js';
import {
  CLIENT_ID_LENGTH,
  longText,
  NOTIFY_URL_LENGTH,
  nullable,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  text,
  wholeNumber,
} from '../database/columns.js';
import { IDEMPOTENCY_KEY_LENGTH } from '../http/idempotency-key.js';

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

@Entity('usher_movie_order')
@Index('usher_movie_order_list', ['clientId', 'listPosition', 'id'])
@Index('usher_movie_order_completions', ['clientId', 'status', 'completionPosition', 'lastUpdatedAt'])
@Index('usher_movie_order_day', ['clientId', 'status', 'lastUpdatedAt'])
@Index('usher_movie_order_owner', ['ownerId', 'id'], { where: 'owner_id IS NOT NULL' })
@Index('usher_movie_order_retention', ['status', 'lastUpdatedAt'])
export class MovieOrder {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The resource owner it was created for. Null: the client created it for itself. */
  @Column(nullable(text('owner_id', OWNER_ID_LENGTH)))
  ownerId: string | null;

  @Column(text('status', 20))
  status: OrderStatus;

  @Column(text('currency_code', 3))
  currencyCode: string;

  /** In cents, like the other amounts. */
  @Column(wholeNumber('total_amount'))
  totalAmount: number;

  @Column(wholeNumber('booking_amount'))
  bookingAmount: number;

  @Column(wholeNumber('payable_amount'))
  payableAmount: number;

  /** The order's own Notify URL. Null: the client's registered one is used. */
  @Column(nullable(text('notify_url', NOTIFY_URL_LENGTH)))
  notifyUrl: string | null;

  @Column(nullable(text('booking_id', 255)))
  bookingId: string | null;

  @Column(nullable(text('transaction_id', 255)))
  transactionId: string | null;

  @Column(nullable(longText('qr_code')))
  qrCode: string | null;

  /** The actor who completed it, and from which address. */
  @Column(nullable(text('completed_by', MAX_ACTOR_LENGTH)))
  completedBy: string | null;

  @Column(nullable(text('completed_from', MAX_ACTOR_ADDRESS_LENGTH)))
  completedFrom: string | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(wholeNumber('last_updated_at'))
  lastUpdatedAt: number;

  /** The place in the list of the client's orders. Null until the list is read, see list/order-positions.ts. */
  @Column(nullable(wholeNumber('list_position')))
  listPosition: number | null;

  /** The place in the list of the client's completed orders. Null until that list is read. */
  @Column(nullable(wholeNumber('completion_position')))
  completionPosition: number | null;
}

/**
 * The last positions that a client's orders have in its lists. It is made by the first reader, and locked by each reader that
 * gives positions: one at a time, so that whoever sees a position also sees all smaller ones.
 */
@Entity('usher_order_counter')
export class OrderCounter {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The last `list_position` of an order of this client. */
  @Column(wholeNumber('list_position'))
  listPosition: number;

  /** The last `completion_position` of an order of this client. */
  @Column(wholeNumber('completion_position'))
  completionPosition: number;
}

/** The order that was created with an `Idempotency-Key` of a client, or of a client for one resource owner. */
@Entity('usher_idempotency_key')
@Index('usher_idempotency_key_age', ['createdAt'])
export class IdempotencyKey {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** Empty: the client itself. A part of the key cannot be null. */
  @PrimaryColumn(text('owner_id', OWNER_ID_LENGTH))
  ownerId: string;

  @PrimaryColumn(text('idempotency_key', IDEMPOTENCY_KEY_LENGTH))
  key: string;

  /** SHA-256 of the validated request, base64url. */
  @Column(text('request_digest', 43))
  requestDigest: string;

  @Column(text('order_id', OWN_ID_LENGTH))
  orderId: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;
}
