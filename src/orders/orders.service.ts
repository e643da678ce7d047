import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, Repository } from 'typeorm';
import type { Client } from '../clients/client.entity.js';
import { ClientsService } from '../clients/clients.service.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { conflict, notFound, type Problem, validated } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { newId, orderIdOf } from '../values/identifier.js';
import { checkIdempotencyKey, takeIdempotencyKey } from './idempotency.js';
import { MovieOrder } from './movie-order.entity.js';
import { Completion, NewOrder, notificationData, type OrderView, viewOf } from './movie-order.js';
import { CompletionEvents, OrderCompleted } from './order-completed.event.js';

/** Creates and completes movie orders. Keys are those of specification 2.3; errors are problems of http/problem.ts. */
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
   * A new PENDING order of the client, `input` being a {@link NewOrder}; 400 for a bad field, 422 without any Notify URL.
   * With an idempotency key a repeated request answers with the order of the first one; another request is 422.
   */
  async create(client: Client, input: unknown, idempotencyKey?: string): Promise<OrderView> {
    const request = validated(NewOrder, input);
    await this.checkNotifyUrl(client, request.notifyUrl ?? null);
    const key = idempotencyKey === undefined ? null : checkIdempotencyKey(idempotencyKey);
    return inTransaction(this.dataSource, async (manager) => {
      const order = this.newOrder(client, request, await databaseNow(manager));
      const id = key === null ? order.id : await takeIdempotencyKey(manager, key, order, request);
      if (id !== order.id) return viewOf(await manager.findOneByOrFail(MovieOrder, { id }));
      await manager.insert(MovieOrder, order);
      return viewOf(order);
    });
  }

  /** An order of the client; another client's looks like one that does not exist. */
  async get(client: Client, key: string): Promise<OrderView> {
    const order = await this.orders.findOneBy({ id: orderIdOf(key) ?? '', clientId: client.id });
    if (!order) throw unknownOrder(key);
    return viewOf(order);
  }

  /**
   * Completes an order, `input` being a {@link Completion}, and emits {@link OrderCompleted} in the same transaction.
   * Again with equal values: the same answer and no second event; with different ones: 409. `requestId` goes into the
   * log lines of its notification.
   */
  async complete(key: string, input: unknown, requestId: string | null = null): Promise<OrderView> {
    const completion = validated(Completion, input);
    return inTransaction(this.dataSource, async (manager) => {
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
      // Last: were a listener's failed statement hushed up, Postgres would answer COMMIT and roll back all the same.
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
    // The request's client may be some seconds old: one without a URL is looked at again.
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
  if (!isSame) throw conflict('the order is completed already, with other values');
  return order;
}
