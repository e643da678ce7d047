import { Injectable, Logger, type OnApplicationBootstrap, Scope, SetMetadata } from '@nestjs/common';
import { ContextIdFactory, DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core';
import { STATIC_CONTEXT } from '@nestjs/core/injector/constants.js';
import { EventEmitter2, OnEvent } from '@nestjs/event-emitter';
import type { EntityManager } from 'typeorm';
import { allEnded } from '../database/sql.js';
import type { CompletedOrderData } from '../values/notification.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';
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
    /** The resource owner for whom the client created the order, or null. */
    readonly ownerId: string | null = null,
  ) {}
}

/** Subscribes a method to {@link OrderCompleted}. With a plain `@OnEvent`, an error would not roll the completion back. */
export const OnOrderCompleted = (): MethodDecorator => OnEvent(OrderCompleted.NAME, { suppressErrors: false });

const SHARES_TRANSACTION = 'usher:shares-transaction';

/**
 * Marks a listener that refuses an order only by a problem of http/problem.ts, and leaves the transaction usable. Completions of
 * several orders may then share a transaction. With `several` false each order has its own, but the listener is called when the
 * other marked ones are.
 */
export const SharesTransaction = (several = true): MethodDecorator => SetMetadata(SHARES_TRANSACTION, several);

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

/** Whether Nest has made a provider, or makes it only when it is needed: then its prototype is enough. */
const isMade = (wrapper: Wrapper): boolean =>
  (wrapper.scope ?? Scope.DEFAULT) !== Scope.DEFAULT ||
  wrapper.getInstanceByContextId(STATIC_CONTEXT).isResolved === true ||
  needsRequest(wrapper);

/**
 * Whether a provider is request-scoped or needs one that is, as far as Nest has looked. Nest 11 would keep the answer of its
 * own `isDependencyTreeStatic()`, which can be wrong before it has looked at all of them.
 */
function needsRequest(wrapper: Wrapper | undefined, seen = new Set<Wrapper>()): boolean {
  if (!wrapper || seen.has(wrapper)) return false;
  seen.add(wrapper);
  const properties = wrapper.getPropertiesMetadata() ?? [];
  const needed = [wrapper.getCtorMetadata(), properties.map((one) => one.wrapper), wrapper.getEnhancersMetadata()];
  return wrapper.scope === Scope.REQUEST || needed.flatMap((some) => some ?? []).some((one) => needsRequest(one, seen));
}

interface Subscription {
  event: string | symbol;
  options?: { prependListener?: boolean; suppressErrors?: boolean };
}

/**
 * Emits Usher's events to all methods with `@OnEvent`. It does not use EventEmitterModule, because `app.get(EventEmitter2)`
 * could then return Usher's emitter instead of the application's.
 */
@Injectable()
export class UsherEmitter extends EventEmitter2 implements OnApplicationBootstrap {
  private readonly logger = new Logger('Usher Event');
  /** The listeners that {@link SharesTransaction} marks. */
  private readonly sharing = new WeakSet<ListenerFn>();
  /** Events with a listener that allows one order in a transaction. */
  private readonly unshared = new Set<string | symbol>();
  private readonly subscribed = new WeakSet<Wrapper>();
  /** Whether the application has started, so that no provider comes any more. */
  private isStarted = false;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly moduleRef: ModuleRef,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    // All are made by now, except those of a module that the application loads lazily at this moment.
    this.subscribeAll(this.wrappers());
    this.isStarted = true;
  }

  /**
   * Subscribes the listeners of all providers, each once. Until Nest has instantiated all of them this is refused: a provider
   * that is missing could be a listener that would refuse the order.
   */
  subscribe(): void {
    if (this.isStarted) return;
    const wrappers = this.wrappers();
    if (!wrappers.every(isMade))
      throw new StartUpError(
        'the application has not made all of its providers yet; complete orders from onModuleInit() on, not in a constructor ' +
          'or provider factory',
      );
    this.subscribeAll(wrappers);
  }

  private wrappers(): Wrapper[] {
    return [...this.discovery.getProviders(), ...this.discovery.getControllers()];
  }

  private subscribeAll(wrappers: Wrapper[]): void {
    for (const wrapper of wrappers) {
      if (!wrapper.instance || wrapper.isAlias || this.subscribed.has(wrapper)) continue;
      this.subscribed.add(wrapper);
      this.subscribeMethods(wrapper);
    }
  }

  /** Throws if nothing listens to completions, because no notification would be sent. */
  checkCompletionListener(): void {
    this.subscribe();
    if (this.listenerCount(OrderCompleted.NAME) > 0) return;
    throw new StartUpError(`no listener for ${OrderCompleted.NAME}; import WebhookModule together with OrdersModule`);
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
        const several: unknown = Reflect.getMetadata(SHARES_TRANSACTION, method);
        if (several !== undefined) this.sharing.add(listener);
        if (several !== true) this.unshared.add(event);
      }
    }
  }

  /** Whether all listeners of an event allow several orders in a transaction. */
  mayShareTransaction(event: string): boolean {
    return !this.unshared.has(event);
  }

  /**
   * Calls the listeners at the same time, waits until all have ended, then rejects if one of them did. Those that
   * {@link SharesTransaction} marks come before the others: what they wrote after a deadlock of another one would be committed
   * by itself on MySQL. `sharing` last: after the others, so that they write nothing if one of the others rejects. An
   * application may emit before it has started, and while it closes.
   */
  async emitAndWait(event: string, value: unknown, sharing: 'first' | 'last' = 'first'): Promise<void> {
    this.subscribe();
    const listeners = this.listeners(event) as ListenerFn[];
    for (const isSharing of [sharing === 'first', sharing === 'last']) {
      const called = listeners.filter((listener) => this.sharing.has(listener) === isSharing);
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
