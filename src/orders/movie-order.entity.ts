import { Entity, Index } from 'typeorm';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../values/actor.js';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  LongText,
  NOTIFY_URL_LENGTH,
  NULLABLE,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../database/columns.js';
import { IDEMPOTENCY_KEY_LENGTH } from '../http/idempotency-key.js';

/** What a status means for an order. */
interface Status {
  /** The status after a completion: another one, the same one if the order is already completed, or null for a conflict. */
  complete: 'COMPLETED' | null;
  list: 'pending' | 'completed';
  /** Whether its notification is shown with the order. */
  isNotified: boolean;
  /** Whether it is deleted when its retention is over. */
  expires: boolean;
}

/** All statuses of an order. PENDING is Usher's own; specification 3 has only COMPLETED. */
export const ORDER_STATUSES = {
  PENDING: { complete: 'COMPLETED', list: 'pending', isNotified: false, expires: false },
  COMPLETED: { complete: 'COMPLETED', list: 'completed', isNotified: true, expires: true },
} as const satisfies Record<string, Status>;

export type OrderStatus = keyof typeof ORDER_STATUSES;

export const orderStatuses = Object.keys(ORDER_STATUSES) as [OrderStatus, ...OrderStatus[]];

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
@Index('usher_movie_order_booking', ['bookingId'])
@Index('usher_movie_order_transaction', ['transactionId'])
export class MovieOrder {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  /** The resource owner it was created for. Null: the client created it for itself. */
  @Text(OWNER_ID_LENGTH, NULLABLE)
  ownerId: string | null;

  @Text(20)
  status: OrderStatus;

  @Text(3)
  currencyCode: string;

  /** In the minor unit of the currency, like the other amounts. */
  @WholeNumber()
  totalAmount: number;

  @WholeNumber()
  bookingAmount: number;

  @WholeNumber()
  payableAmount: number;

  /** The order's own Notify URL. Null: the client's registered one is used. */
  @Text(NOTIFY_URL_LENGTH, NULLABLE)
  notifyUrl: string | null;

  @Text(255, NULLABLE)
  bookingId: string | null;

  @Text(255, NULLABLE)
  transactionId: string | null;

  @LongText(NULLABLE)
  qrCode: string | null;

  /** The actor who completed it, and from which address. */
  @Text(MAX_ACTOR_LENGTH, NULLABLE)
  completedBy: string | null;

  @Text(MAX_ACTOR_ADDRESS_LENGTH, NULLABLE)
  completedFrom: string | null;

  @WholeNumber()
  createdAt: number;

  @WholeNumber()
  lastUpdatedAt: number;

  /** The place in the list of the client's orders. Null until the list is read, see list/order-positions.ts. */
  @WholeNumber(NULLABLE)
  listPosition: number | null;

  /** The place in the list of the client's completed orders. Null until that list is read. */
  @WholeNumber(NULLABLE)
  completionPosition: number | null;
}

/**
 * The last positions of a client's orders in its lists. A reader that gives positions locks the row, so that whoever sees a
 * position also sees all smaller ones.
 */
@Entity('usher_order_counter')
export class OrderCounter {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  @WholeNumber()
  listPosition: number;

  @WholeNumber()
  completionPosition: number;
}

/** The order that was created with an `Idempotency-Key` of a client, or of a client for one resource owner. */
@Entity('usher_idempotency_key')
@Index('usher_idempotency_key_age', ['createdAt'])
export class IdempotencyKey {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** Empty: the client itself. A part of the key cannot be null. */
  @Text(OWNER_ID_LENGTH, PRIMARY)
  ownerId: string;

  @Text(IDEMPOTENCY_KEY_LENGTH, { ...PRIMARY, name: 'idempotency_key' })
  key: string;

  /** SHA-256 of the validated request, base64url. */
  @Text(DIGEST_LENGTH)
  requestDigest: string;

  @Text(OWN_ID_LENGTH)
  orderId: string;

  @WholeNumber()
  createdAt: number;
}
