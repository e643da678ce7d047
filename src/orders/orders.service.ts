import { Inject, Injectable } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import type { DataSource, EntityManager } from 'typeorm';
import { heldBy, type Holder } from '../auth/bearer/bearer.guard.js';
import type { Client } from '../clients/client.entity.js';
import { ClientsService } from '../clients/clients.service.js';
import { Batcher } from '../database/statements/batcher.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { DatabaseClock } from '../database/database-clock.js';
import { insertIfAbsent, insertRows } from '../database/statements/statement.js';
import {
  callersManager,
  databaseNow,
  joinTransaction,
  retryDeadlocks,
  type TransactionOptions,
} from '../database/sql.js';
import { idempotencyKeyErrors } from '../http/idempotency-key.js';
import { fieldError, validated } from '../http/problem.js';
import { inSpan, orderAttributes } from '../telemetry/tracing.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { newId, orderIdOf, orderKey } from '../values/identifier.js';
import { OWNER_ID, WANTED_OWNER_ID } from '../values/resource-owner.js';
import { claimIdempotencyKey, latestIn } from './idempotency.js';
import { MovieOrder } from './movie-order.entity.js';
import { Completion, NewOrder, type OrderView, viewOf } from './movie-order.js';
import { OrderCompletions, OrderEvents, unknownOrder } from './complete/order-completions.js';

/** How {@link OrdersService.create} runs. */
export interface CreateOptions extends TransactionOptions {
  /** The resource owner for whom the client creates it. Default: the client creates it for itself. */
  ownerId?: string | null | undefined;
  /** The client's Idempotency-Key. */
  idempotencyKey?: string | undefined;
  /** The id of the request that creates the order, for its log line. */
  requestId?: string | null | undefined;
}

/** How {@link OrdersService.complete} runs. */
export interface CompleteOptions extends TransactionOptions {
  /** The id of the request that completes the order, for its log line and those of its notification. */
  requestId?: string | null | undefined;
  /** Who completes the order; it is stored in the order's row. Default: the application, `host`. */
  actor?: Actor | undefined;
}

/** How many statements with new orders run at the same time. */
const MAX_RUNNING = 4;

/** Creates and completes movie orders. Keys are as in specification 2.3. Errors are problems of http/problem.ts. */
@Injectable()
export class OrdersService {
  private readonly inserts: Batcher<MovieOrder, boolean>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clients: ClientsService,
    private readonly events: OrderEvents,
    private readonly completions: OrderCompletions,
    private readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.inserts = new Batcher(async (orders) => {
      await insertRows(dataSource, MovieOrder, orders);
      return orders.map(() => true);
    }, MAX_RUNNING);
  }

  /**
   * Creates a PENDING order from `input`. 400 for an invalid field, 422 without a Notify URL. With an idempotency key, an equal
   * request gets the order of the first one and a different request gets 422.
   */
  async create(
    client: Client,
    input: NewOrder,
    { ownerId = null, idempotencyKey, requestId = null, ...transaction }: CreateOptions = {},
  ): Promise<OrderView> {
    const holder = { clientId: client?.id, ownerId };
    // Refuses an undefined client or owner.
    heldBy(holder);
    const key = idempotencyKey ?? null;
    const request = validated(NewOrder, input, 'body', ({ notifyUrl }) => [
      ...this.clients.notifyUrlErrors(notifyUrl),
      ...(key === null ? [] : idempotencyKeyErrors(key)),
      ...(ownerId === null || OWNER_ID.test(ownerId) ? [] : [fieldError('body', ['ownerId'], WANTED_OWNER_ID)]),
    ]);
    const joined = callersManager(this.dataSource, transaction);
    // The request's client may be cached for some seconds, so one without a URL is read again.
    if (request.notifyUrl === undefined && (client.notifyUrl ?? null) === null)
      await this.clients.registeredNotifyUrl(client.id, joined);
    const create = (manager: EntityManager | null): Promise<OrderView> =>
      inSpan('order create', (span) => this.insert(manager, { key, requestId, ...holder }, request, span));
    return joined ? joinTransaction(this.dataSource, transaction, create) : retryDeadlocks(() => create(null));
  }

  /** Returns an order of the client; with an owner, only one that was created for this owner. 404 for any other order. */
  async get(client: Client, key: string, ownerId: string | null = null): Promise<OrderView> {
    const order = await this.dataSource.manager.findOneBy(MovieOrder, {
      id: orderIdOf(key) ?? '',
      ...heldBy({ clientId: client?.id, ownerId }),
    });
    if (!order) throw unknownOrder(key);
    return viewOf(order);
  }

  /**
   * Completes an order with `input`, and emits `OrderCompleted` in the same transaction. Repeated with equal values: the same
   * answer and no second event. With other values: 409.
   */
  async complete(
    key: string,
    input: Completion,
    { requestId = null, actor = this.options.actor, ...transaction }: CompleteOptions = {},
  ): Promise<OrderView> {
    const completion = validated(Completion, input);
    return viewOf(await this.completions.complete({ key, completion, requestId, actor }, transaction));
  }

  /**
   * Without a transaction of the caller it uses none: new orders of the same moment share a statement, and a key is stored
   * before its order.
   */
  private async insert(
    callers: EntityManager | null,
    { key, requestId, ...holder }: Holder & { key: string | null; requestId: string | null },
    request: NewOrder,
    span: Span,
  ): Promise<OrderView> {
    const manager = callers ?? this.dataSource.manager;
    let order = this.newOrder(holder, request, await (callers ? databaseNow(callers) : this.clock.now()));
    const claim = key === null ? null : await claimIdempotencyKey(manager, key, order, request);
    if (claim && claim.orderId !== order.id) {
      const found = await manager.findOneBy(MovieOrder, { id: claim.orderId });
      if (found) return viewOf(found);
      order = { ...this.newOrder(holder, request, claim.createdAt), id: claim.orderId };
    }
    const reference = orderKey(order.id);
    span.setAttributes(orderAttributes(reference, holder.clientId));
    const isAlone = callers === null && key === null;
    const isNew = await (isAlone ? this.inserts.run(order) : insertIfAbsent(manager, MovieOrder, order));
    if (isNew) this.events.record('created', callers, { reference, client: holder.clientId, requestId });
    // Another transaction has created it.
    else order = (await manager.findOne(MovieOrder, { where: { id: order.id }, ...latestIn(manager) })) ?? order;
    return viewOf(order);
  }

  private newOrder(holder: Holder, request: NewOrder, now: number): MovieOrder {
    return {
      id: newId(this.options.environment, now),
      status: 'PENDING',
      bookingId: null,
      transactionId: null,
      qrCode: null,
      completedBy: null,
      completedFrom: null,
      createdAt: now,
      lastUpdatedAt: now,
      listPosition: null,
      completionPosition: null,
      ...request,
      ...holder,
      notifyUrl: request.notifyUrl ?? null,
    };
  }
}
