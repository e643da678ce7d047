import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { StartUpError } from '../core/start-up-error.js';
import { OrderCompleted } from './order-completed.event.js';

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
