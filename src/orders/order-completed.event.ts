import { SetMetadata } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import type { CompletedOrderData } from '../values/notification.js';

/**
 * Emitted inside the transaction that completes an order. Changes made with `manager` are committed with the order, and a
 * listener that throws rolls the completion back. Subscribe with {@link OnOrderCompleted}.
 */
export class OrderCompleted {
  static readonly NAME = 'usher.order.completed';

  constructor(
    readonly order: CompletedOrderData,
    readonly clientId: string,
    /** The order's own Notify URL. Null: the client's registered one is used. */
    readonly notifyUrl: string | null,
    readonly manager: EntityManager,
    /** The id of the HTTP request that completed the order, for the log, or null. */
    readonly requestId: string | null,
    /** The resource owner for whom the client created the order, or null. */
    readonly ownerId: string | null = null,
  ) {}
}

/** Subscribes a method to {@link OrderCompleted}. With a plain `@OnEvent`, an error would not roll the completion back. */
export const OnOrderCompleted = (): MethodDecorator => OnEvent(OrderCompleted.NAME, { suppressErrors: false });

const SHARES_TRANSACTION = 'usher:shares-transaction';

/**
 * Marks a listener with which completions of several orders may be one transaction: it refuses an order with a problem of
 * http/problem.ts and nothing else, and leaves the transaction usable.
 */
export const SharesTransaction = (): MethodDecorator => SetMetadata(SHARES_TRANSACTION, true);

export const sharesTransaction = (listener: object): boolean => Reflect.hasMetadata(SHARES_TRANSACTION, listener);
