import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { allEnded, inTransaction, joinTransaction, type TransactionOptions } from '../../database/sql.js';
import { Batcher } from '../../database/statements/batcher.js';
import { conflict, notFound, Problem } from '../../http/problem.js';
import { inSpan, isTracing, orderAttributes } from '../../tracing/tracing.js';
import { type Actor, fitting } from '../../values/actor.js';
import { orderIdOf } from '../../values/identifier.js';
import type { MovieOrder } from '../movie-order.entity.js';
import { type Completion, notificationData } from '../movie-order.js';
import { OrderCompleted } from '../order-completed.event.js';
import { OrderEvents } from '../order-events.js';
import { lockOrders, updateCompleted } from './completion-statements.js';

export interface CompletionRequest {
  key: string;
  completion: Completion;
  requestId: string | null;
  actor: Actor;
}

/** Transactions with completions of several orders that run at the same time. */
const MAX_RUNNING = 4;

/** Completes orders. The event of each is emitted in the transaction that completes it. */
@Injectable()
export class OrderCompletions {
  private readonly shared: Batcher<CompletionRequest, MovieOrder | null>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly events: OrderEvents,
  ) {
    this.shared = new Batcher(
      (requests) => inTransaction(dataSource, (manager) => this.completeFree(manager, requests)),
      { maxRunning: MAX_RUNNING },
    );
  }

  /** Returns the completed order. Repeated with equal values: the same order and no second event. With other values: 409. */
  complete(request: CompletionRequest, transaction: TransactionOptions): Promise<MovieOrder> {
    return inSpan('order complete', async (span) => {
      const order =
        (this.mayShare(transaction) ? await this.shared.run(request) : null) ??
        (await joinTransaction(this.dataSource, transaction, (manager) => this.completeOne(manager, request)));
      span.setAttributes(orderAttributes(request.key, order.clientId));
      return order;
    });
  }

  /**
   * Whether completions of the same moment may be one transaction. A listener of the application could roll back those of
   * others, and in a trace each request has its own statements.
   */
  private mayShare({ manager }: TransactionOptions): boolean {
    return !manager && this.events.mayShareTransaction && !isTracing();
  }

  private async completeOne(manager: EntityManager, request: CompletionRequest): Promise<MovieOrder> {
    const [found] = await lockOrders(manager, [orderIdOf(request.key) ?? ''], 'wait');
    if (!found) throw unknownOrder(request.key);
    const { order, now } = found;
    if (order.status === 'COMPLETED') return sameCompletion(order, request.completion);
    await this.emit(manager, setCompleted(order, request, now), request);
    // Must be last: if a listener hid a failed statement, this update fails too, and the completion is rolled back.
    await updateCompleted(manager, [order]);
    return order;
  }

  /**
   * Completes the orders that are PENDING and not locked. Null for each other request, also for one that gets a problem and
   * for the second one of an order: it needs a transaction of its own.
   */
  private async completeFree(manager: EntityManager, requests: CompletionRequest[]): Promise<(MovieOrder | null)[]> {
    const ids = requests.map(({ key }) => orderIdOf(key) ?? '');
    const free = new Map(
      (await lockOrders(manager, [...new Set(ids)], 'leave out')).map((found) => [found.order.id, found]),
    );
    const completions = requests.map(async (request, index) => {
      const found = free.get(ids[index] as string);
      if (found?.order.status !== 'PENDING') return null;
      const order = setCompleted(found.order, request, found.now);
      return this.emit(manager, order, request).then(() => order, nullForProblem);
    });
    const results = await allEnded(completions);
    const completed = results.filter((order) => order !== null);
    if (completed.length > 0) await updateCompleted(manager, completed);
    return results;
  }

  private emit(manager: EntityManager, order: MovieOrder, { completion, requestId }: CompletionRequest): Promise<void> {
    const { clientId, notifyUrl, ownerId } = order;
    const data = notificationData(order, completion);
    return this.events.completed(new OrderCompleted(data, clientId, notifyUrl, manager, requestId, ownerId));
  }
}

/** A problem concerns its own order alone. Another error may have made the transaction unusable. */
function nullForProblem(error: unknown): null {
  if (error instanceof Problem) return null;
  throw error;
}

function setCompleted(order: MovieOrder, { completion, actor }: CompletionRequest, now: number): MovieOrder {
  order.status = 'COMPLETED';
  order.bookingId = completion.bookingId;
  order.transactionId = completion.transactionId;
  order.qrCode = completion.qrCode ?? null;
  ({ name: order.completedBy, address: order.completedFrom } = fitting(actor));
  order.lastUpdatedAt = now;
  return order;
}

function sameCompletion(order: MovieOrder, { bookingId, transactionId, qrCode }: Completion): MovieOrder {
  const isSame =
    order.bookingId === bookingId && order.transactionId === transactionId && order.qrCode === (qrCode ?? null);
  if (!isSame) throw conflict('the order is already completed with other values');
  return order;
}

export const unknownOrder = (key: string): Problem => notFound(`there is no order ${key.slice(0, 64)}`);
