import { OnEvent } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import type { CompletedOrderData } from '../core/notification.js';

/**
 * Emitted inside the transaction that completes an order. What a listener writes with `manager` commits with the order,
 * and a listener that throws rolls the completion back: subscribe with {@link OnOrderCompleted}.
 */
export class OrderCompleted {
  static readonly NAME = 'usher.order.completed';

  constructor(
    readonly order: CompletedOrderData,
    readonly clientId: string,
    /** The order's own Notify URL; null: the client's registered one. */
    readonly notifyUrl: string | null,
    readonly manager: EntityManager,
    /** Of the request that completed the order, for the log; null where none did. */
    readonly requestId: string | null,
  ) {}
}

/** Subscribes a method to {@link OrderCompleted}. A plain `@OnEvent` would log what the method throws and carry on. */
export const OnOrderCompleted = (): MethodDecorator => OnEvent(OrderCompleted.NAME, { suppressErrors: false });
