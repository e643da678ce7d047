import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import { UsherEmitter } from '../events/usher-emitter.js';
import type { CompletedOrderData } from '../protocol/notification.js';
import { StartUpError } from '../values/start-up-error.js';

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
  ) {}
}

/** Subscribes a method to {@link OrderCompleted}. With a plain `@OnEvent`, an error would not roll the completion back. */
export const OnOrderCompleted = (): MethodDecorator => OnEvent(OrderCompleted.NAME, { suppressErrors: false });

/** Emits {@link OrderCompleted}. Start-up fails without a listener, because no notification would be sent. */
@Injectable()
export class CompletionEvents implements OnApplicationBootstrap {
  constructor(private readonly emitter: UsherEmitter) {}

  onApplicationBootstrap(): void {
    this.emitter.subscribe();
    if (this.emitter.listenerCount(OrderCompleted.NAME) === 0) {
      throw new StartUpError(`no listener for ${OrderCompleted.NAME}; import WebhookModule together with OrdersModule`);
    }
  }

  /** Waits for the listeners. Rejects if one of them rejects. */
  async emit(event: OrderCompleted): Promise<void> {
    await this.emitter.emitAsync(OrderCompleted.NAME, event);
  }
}
