import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { AfterCommit } from '../database/after-commit.js';
import { OrderCompleted, sharesTransaction, UsherEmitter } from '../events/events.js';
import { MetricsRegistry } from '../telemetry/metrics.module.js';
import { StartUpError } from '../values/start-up-error.js';

interface OrderFields {
  /** The order's key, under the name that it has in the log lines of its notification. */
  reference: string;
  client: string;
  requestId: string | null;
}

/** The events of orders. Each has a log line and a metric, both only after its transaction is committed. */
@Injectable()
export class OrderEvents implements OnApplicationBootstrap {
  private readonly logger = new Logger('orders');
  private readonly count: Record<'created' | 'completed', Counter>;
  /** Whether the event of a completion may be emitted in a transaction with other completions. */
  mayShareTransaction = false;

  constructor(
    private readonly emitter: UsherEmitter,
    private readonly afterCommit: AfterCommit,
    registry: MetricsRegistry,
  ) {
    const counter = (event: string) =>
      new Counter({ name: `usher_orders_${event}_total`, help: `Orders that were ${event}.`, registers: [registry] });
    this.count = { created: counter('created'), completed: counter('completed') };
  }

  /** Start-up fails without a listener, because no notification would be sent. */
  onApplicationBootstrap(): void {
    this.emitter.subscribe();
    const listeners = this.emitter.methodsOf(OrderCompleted.NAME);
    if (listeners.length === 0) {
      throw new StartUpError(`no listener for ${OrderCompleted.NAME}; import WebhookModule together with OrdersModule`);
    }
    this.mayShareTransaction = listeners.every(sharesTransaction);
  }

  /** Without a manager the order is committed already. */
  created(manager: EntityManager | null, order: OrderFields): void {
    this.record('created', manager, order);
  }

  /** Emits {@link OrderCompleted} and waits for the listeners. Rejects if one of them rejects. */
  async completed(event: OrderCompleted): Promise<void> {
    await this.emitter.emitAndWait(OrderCompleted.NAME, event);
    const { order, clientId, manager, requestId } = event;
    this.record('completed', manager, { reference: order.key, client: clientId, requestId });
  }

  private record(event: 'created' | 'completed', manager: EntityManager | null, order: OrderFields): void {
    const record = (): void => {
      this.count[event].inc();
      this.logger.log({ event: `order.${event}`, ...order });
    };
    if (manager) this.afterCommit.do(manager, record);
    else record();
  }
}
