import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { OnEvent, EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import type { CompletedOrderData } from '../protocol/notification.js';
import { StartUpError } from '../values/start-up-error.js';

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

/** Emits {@link OrderCompleted}, and sees to it that somebody listens: without, notifications would vanish silently. */
@Injectable()
export class CompletionEvents implements OnApplicationBootstrap {
  constructor(
    private readonly emitter: EventEmitter2,
    private readonly readiness: EventEmitterReadinessWatcher,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.readiness.waitUntilReady();
    if (this.emitter.listenerCount(OrderCompleted.NAME) === 0) {
      throw new StartUpError(`nobody listens to ${OrderCompleted.NAME}: import WebhookModule beside OrdersModule`);
    }
  }

  /** Waits for the listeners; rejects when one does. */
  async emit(event: OrderCompleted): Promise<void> {
    await this.emitter.emitAsync(OrderCompleted.NAME, event);
  }
}
