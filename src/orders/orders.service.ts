import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, Repository } from 'typeorm';
import type { Client } from '../clients/client.entity.js';
import { ClientsService } from '../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, joinTransaction, type TransactionOptions } from '../database/sql.js';
import { conflict, notFound, type Problem, validated } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { newId, orderIdOf } from '../values/identifier.js';
import { checkIdempotencyKey, claimIdempotencyKey } from './idempotency.js';
import { MovieOrder } from './movie-order.entity.js';
import { Completion, NewOrder, notificationData, type OrderView, viewOf } from './movie-order.js';
import { CompletionEvents, OrderCompleted } from './order-completed.event.js';

export interface CreateOptions extends TransactionOptions {
  /** The client's Idempotency-Key. */
  idempotencyKey?: string | undefined;
}

export interface CompleteOptions extends TransactionOptions {
  /** The id of the request that completes the order, for the log lines of its notification. */
  requestId?: string | null | undefined;
}

/** Creates and completes movie orders. Keys are as in specification 2.3. Errors are problems of http/problem.ts. */
@Injectable()
export class OrdersService {
  private readonly orders: Repository<MovieOrder>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clients: ClientsService,
    private readonly events: CompletionEvents,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.orders = dataSource.getRepository(MovieOrder);
  }

  /**
   * Creates a PENDING order from `input`, a {@link NewOrder}. 400 for an invalid field, 422 without a Notify URL. With an
   * idempotency key, an equal request gets the order of the first one and a different request gets 422.
   */
  async create(
    client: Client,
    input: unknown,
    { idempotencyKey, ...transaction }: CreateOptions = {},
  ): Promise<OrderView> {
    const request = validated(NewOrder, input);
    await this.checkNotifyUrl(client, request.notifyUrl ?? null);
    const key = idempotencyKey === undefined ? null : checkIdempotencyKey(idempotencyKey);
    return joinTransaction(this.dataSource, transaction, async (manager) => {
      const order = this.newOrder(client, request, await databaseNow(manager));
      const id = key === null ? order.id : await claimIdempotencyKey(manager, key, order, request);
      if (id !== order.id) return viewOf(await manager.findOneByOrFail(MovieOrder, { id }));
      await manager.insert(MovieOrder, order);
      return viewOf(order);
    });
  }

  /** Returns an order of the client. An order of another client is answered like one that does not exist. */
  async get(client: Client, key: string): Promise<OrderView> {
    const order = await this.orders.findOneBy({ id: orderIdOf(key) ?? '', clientId: client.id });
    if (!order) throw unknownOrder(key);
    return viewOf(order);
  }

  /**
   * Completes an order with `input`, a {@link Completion}, and emits {@link OrderCompleted} in the same transaction.
   * Repeated with equal values: the same answer and no second event. With other values: 409.
   */
  async complete(
    key: string,
    input: unknown,
    { requestId = null, ...transaction }: CompleteOptions = {},
  ): Promise<OrderView> {
    const completion = validated(Completion, input);
    return joinTransaction(this.dataSource, transaction, async (manager) => {
      const order = await this.lock(manager, key);
      if (order.status === 'COMPLETED') return viewOf(sameCompletion(order, completion));
      order.status = 'COMPLETED';
      order.bookingId = completion.bookingId;
      order.transactionId = completion.transactionId;
      order.qrCode = completion.qrCode ?? null;
      order.lastUpdatedAt = await databaseNow(manager);
      await this.events.emit(
        new OrderCompleted(notificationData(order, completion), order.clientId, order.notifyUrl, manager, requestId),
      );
      // Must be last: if a listener hid a failed statement, this update fails too, and the completion is rolled back.
      await manager.update(MovieOrder, { id: order.id }, order);
      return viewOf(order);
    });
  }

  private newOrder(client: Client, request: NewOrder, now: number): MovieOrder {
    return this.orders.create({
      ...request,
      id: newId(this.options.environment, now),
      clientId: client.id,
      status: 'PENDING',
      notifyUrl: request.notifyUrl ?? null,
      bookingId: null,
      transactionId: null,
      qrCode: null,
      createdAt: now,
      lastUpdatedAt: now,
    });
  }

  private async checkNotifyUrl(client: Client, notifyUrl: string | null): Promise<void> {
    // The request's client may be cached for some seconds, so one without a URL is read again.
    if (notifyUrl === null && client.notifyUrl === null) await this.clients.registeredNotifyUrl(client.id);
    if (notifyUrl !== null) this.clients.checkNotifyUrlField(notifyUrl);
  }

  private async lock(manager: EntityManager, key: string): Promise<MovieOrder> {
    const order = await manager.findOne(MovieOrder, {
      where: { id: orderIdOf(key) ?? '' },
      lock: { mode: 'pessimistic_write' },
    });
    if (!order) throw unknownOrder(key);
    return order;
  }
}

const unknownOrder = (key: string): Problem => notFound(`there is no order ${key.slice(0, 64)}`);

function sameCompletion(order: MovieOrder, { bookingId, transactionId, qrCode }: Completion): MovieOrder {
  const isSame =
    order.bookingId === bookingId && order.transactionId === transactionId && order.qrCode === (qrCode ?? null);
  if (!isSame) throw conflict('the order is already completed with other values');
  return order;
}
