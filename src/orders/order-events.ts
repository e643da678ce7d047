import { Injectable, Logger, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { ContextIdFactory, DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Counter } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { AfterCommit } from '../database/after-commit.js';
import { allEnded } from '../database/sql.js';
import { MetricsRegistry } from '../telemetry/metrics.module.js';
import { StartUpError } from '../values/start-up-error.js';
import { OrderCompleted, sharesTransaction } from './order-completed.event.js';

/** Where `@OnEvent` keeps its subscriptions. The version of @nestjs/event-emitter for Nest 11 does not export this name. */
const EVENT_LISTENER_METADATA = 'EVENT_LISTENER_METADATA';

type ListenerFn = (...values: unknown[]) => void;
type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
type Method = (...values: unknown[]) => Promise<unknown>;

interface Subscription {
  event: string | symbol;
  options?: { prependListener?: boolean; suppressErrors?: boolean };
}

/**
 * Emits Usher's events to all methods with `@OnEvent`. It does not use EventEmitterModule, because `app.get(EventEmitter2)`
 * could then return Usher's emitter instead of the application's.
 */
@Injectable()
export class UsherEmitter extends EventEmitter2 implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('Event');
  private readonly methods: { event: string | symbol; method: object }[] = [];
  private isSubscribed = false;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly moduleRef: ModuleRef,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    this.subscribe();
  }

  onApplicationShutdown(): void {
    this.removeAllListeners();
  }

  /** Subscribes all listeners once. Every provider must be instantiated. */
  subscribe(): void {
    if (this.isSubscribed) return;
    this.isSubscribed = true;
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      if (wrapper.instance && !wrapper.isAlias) this.subscribeMethods(wrapper);
    }
  }

  private subscribeMethods(wrapper: Wrapper): void {
    const prototype = (Object.getPrototypeOf(wrapper.instance) ?? {}) as object;
    for (const name of this.scanner.getAllMethodNames(prototype)) {
      const method: unknown = (wrapper.instance as Record<string, unknown>)[name];
      if (typeof method !== 'function') continue;
      const subscriptions = Reflect.getMetadata(EVENT_LISTENER_METADATA, method) as Subscription[] | undefined;
      for (const { event, options = {} } of subscriptions ?? []) {
        // Callers wait for the promise, which the type of a listener does not show.
        const listener = ((...values) => this.call(wrapper, name, values, options)) as ListenerFn;
        if (options.prependListener) this.prependListener(event, listener);
        else this.on(event, listener);
        this.methods.push({ event, method });
      }
    }
  }

  /** The methods that listen to an event. A decorator's metadata is on them. */
  methodsOf(event: string): object[] {
    return this.methods.filter((one) => one.event === event).map(({ method }) => method);
  }

  /** Calls the listeners at the same time, waits until all have ended, then rejects if one of them did. */
  async emitAndWait(event: string, value: unknown): Promise<void> {
    await allEnded(this.listeners(event).map((listener) => (listener as Method)(value)));
  }

  /** As with EventEmitterModule, errors are logged unless the subscription wants them. */
  private async call(wrapper: Wrapper, name: string, values: unknown[], { suppressErrors = true }) {
    try {
      const instance = wrapper.isDependencyTreeStatic() ? wrapper.instance : await this.requestScoped(wrapper, values);
      return await (instance as Record<string, Method | undefined>)[name]?.(...values);
    } catch (error) {
      if (!suppressErrors) throw error;
      this.logger.error(error instanceof Error ? error.stack : String(error));
    }
  }

  private requestScoped({ token }: Wrapper, values: unknown[]): Promise<unknown> {
    const contextId = ContextIdFactory.create();
    this.moduleRef.registerRequestByContextId(values.length > 1 ? values : values[0], contextId);
    return this.moduleRef.resolve(token, contextId, { strict: false });
  }
}

/** Orders and webhooks share its emitter. */
@Module({ imports: [DiscoveryModule], providers: [UsherEmitter], exports: [UsherEmitter] })
export class EventsModule {}

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
