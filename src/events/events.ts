import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  SetMetadata,
} from '@nestjs/common';
import { ContextIdFactory, DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core';
import { EventEmitter2, OnEvent } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import { allEnded } from '../database/sql.js';
import type { CompletedOrderData } from '../values/notification.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

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
 * Marks a listener that allows completions of several orders in one transaction: it refuses an order only by a problem of
 * http/problem.ts, and leaves the transaction usable.
 */
export const SharesTransaction = (): MethodDecorator => SetMetadata(SHARES_TRANSACTION, true);

/** The final statuses of a webhook (specification 3). */
export type FinalStatus = 'SUCCESS' | 'FAILED';

/**
 * A webhook ended. Emitted once, after the commit, in the process that recorded it. If that process stops between the
 * commit and the event, the event is lost; `WebhookService.find` always has the status.
 */
export class WebhookEnded {
  static readonly NAME = 'usher.webhook.ended';

  constructor(
    readonly id: string,
    readonly referenceId: string,
    readonly clientId: string,
    readonly status: FinalStatus,
    readonly attemptCount: number,
    /** The id of the FAILED webhook that this one resends, or null. */
    readonly resendOf: string | null,
  ) {}
}

/** Subscribes a method to {@link WebhookEnded}. An error that the method throws is logged and has no other effect. */
export const OnWebhookEnded = (): MethodDecorator => OnEvent(WebhookEnded.NAME);

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
  private readonly logger = new Logger('Usher Event');
  /** The listeners that {@link SharesTransaction} marks. */
  private readonly sharing = new WeakSet<ListenerFn>();
  /** Events with a listener that {@link SharesTransaction} does not mark. */
  private readonly unshared = new Set<string | symbol>();
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
        if (Reflect.hasMetadata(SHARES_TRANSACTION, method)) this.sharing.add(listener);
        else this.unshared.add(event);
      }
    }
  }

  /** Whether {@link SharesTransaction} marks all listeners of an event. */
  mayShareTransaction(event: string): boolean {
    return !this.unshared.has(event);
  }

  /**
   * Calls the listeners at the same time, waits until all have ended, then rejects if one of them did. Those that
   * {@link SharesTransaction} marks come before the others: what they wrote after a deadlock of another one would be committed
   * by itself on MySQL.
   */
  async emitAndWait(event: string, value: unknown): Promise<void> {
    const listeners = this.listeners(event) as ListenerFn[];
    for (const isFirst of [true, false]) {
      const called = listeners.filter((listener) => this.sharing.has(listener) === isFirst);
      await allEnded(called.map((listener) => (listener as Method)(value)));
    }
  }

  /** As with EventEmitterModule, errors are logged unless `suppressErrors` is false. */
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

/** Orders and webhooks share its emitter. Each can be used without the other. */
@UsherNamedModule({ imports: [DiscoveryModule], providers: [UsherEmitter], exports: [UsherEmitter] })
export class EventsModule {}
