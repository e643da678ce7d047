import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import {
  endsWithNext,
  endWithNext,
  entityOf,
  inBareTransaction,
  type Parameter,
  runTogether,
  type Statement,
} from '../../database/statements/statement.js';
import { nullForOtherCount } from '../../database/errors.js';
import {
  AfterCommit,
  allEnded,
  callersManager,
  joinTransaction,
  retryDeadlocks,
  type TransactionOptions,
} from '../../database/sql.js';
import { Batcher } from '../../database/statements/batcher.js';
import { conflict, notFound, nullForProblem, type Problem } from '../../http/problem.js';
import { effectOfCompletion, MovieOrder } from '../movie-order.entity.js';
import { type Completion, notificationData } from '../movie-order.js';
import { OrderCompleted, UsherEmitter } from '../../events/events.js';
import { inSpan, isTracing, orderAttributes } from '../../telemetry/tracing.js';
import { type Actor, fitting } from '../../values/actor.js';
import { orderIdOf } from '../../values/identifier.js';
import { Counter } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { LogLine } from '../../values/log-line.js';

interface OrderFields {
  /** The order's key, under the name that it has in the log lines of its notification. */
  reference: string;
  client: string;
  requestId: string | null;
}

/** The events of orders. Each has a log line and a metric, both only after its transaction is committed. */
@Injectable()
export class OrderEvents implements OnApplicationBootstrap {
  private readonly logger = new Logger('Usher orders');
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

  onApplicationBootstrap(): void {
    this.emitter.checkCompletionListener();
    this.mayShareTransaction = this.emitter.mayShareTransaction(OrderCompleted.NAME);
  }

  /** Emits {@link OrderCompleted} and waits for the listeners, as in {@link UsherEmitter.emitAndWait}. */
  async completed(event: OrderCompleted, sharing: 'first' | 'last'): Promise<void> {
    this.emitter.checkCompletionListener();
    await this.emitter.emitAndWait(OrderCompleted.NAME, event, sharing);
    const { order, clientId, manager, requestId } = event;
    this.record('completed', manager, { reference: order.key, client: clientId, requestId });
  }

  /** Without a manager the order is committed already. */
  record(event: 'created' | 'completed', manager: EntityManager | null, order: OrderFields): void {
    const record = (): void => {
      this.count[event].inc();
      this.logger.log(new LogLine({ event: `order.${event}`, ...order }));
    };
    if (manager) this.afterCommit.do(manager, record);
    else record();
  }
}

interface CompletionRequest {
  key: string;
  completion: Completion;
  requestId: string | null;
  actor: Actor;
}

/** How many transactions with several completions run at the same time. */
const MAX_RUNNING = 4;

/** Completes orders. The event of each is emitted in the transaction that completes it. */
@Injectable()
export class OrderCompletions {
  private readonly shared: Batcher<CompletionRequest, MovieOrder | null>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly events: OrderEvents,
  ) {
    this.shared = new Batcher(async (requests) => {
      const completed = retryDeadlocks(() =>
        inBareTransaction(dataSource, (manager) => this.completeFree(manager, requests)),
      );
      return (await completed.catch(nullForProblem).catch(nullForOtherCount)) ?? requests.map(() => null);
    }, MAX_RUNNING);
  }

  complete(request: CompletionRequest, transaction: TransactionOptions): Promise<MovieOrder> {
    return inSpan('order complete', async (span) => {
      const isOwn = !callersManager(this.dataSource, transaction);
      const complete = (manager: EntityManager) => this.completeOne(manager, request, isOwn);
      const order =
        (isOwn && this.mayShare() ? await this.shared.run(request) : null) ??
        (await joinTransaction(this.dataSource, transaction, complete));
      span.setAttributes(orderAttributes(request.key, order.clientId));
      return order;
    });
  }

  /**
   * Whether completions of the same moment may share a transaction. Not with a listener of the application, which could roll
   * back the others, and not in a trace, which shows the statements of each request.
   */
  private mayShare(): boolean {
    return this.events.mayShareTransaction && !isTracing();
  }

  /** A caller's transaction gets no savepoint: a rollback to it would also undo what the caller does at the same time. */
  private async completeOne(manager: EntityManager, request: CompletionRequest, isOwn: boolean): Promise<MovieOrder> {
    const { set, release } = isOwn ? dialectOf(manager).savepoint : { set: [], release: [] };
    const [found] = await lockOrders(manager, [orderIdOf(request.key) ?? ''], 'wait', set);
    if (!found) throw unknownOrder(request.key);
    const { order, now } = found;
    const effect = effectOfCompletion(order.status);
    if (effect === 'conflict') throw conflict(`the order is ${order.status}`);
    if (effect === 'none') return sameCompletion(order, request.completion);
    await this.emit(manager, setCompleted(order, request, now), request, isOwn);
    // Must be last: if a listener hid an error that ended the transaction, this fails too, and nothing is completed.
    await runTogether(manager, [...release, updateOf(manager, [order])], isOwn);
    return order;
  }

  /**
   * Completes the PENDING orders that are not locked. Null for every other request, also for one that gets a problem and for
   * the second one of an order. It then needs its own transaction. This rejects if the notification of one order cannot be
   * recorded at once. Each request then needs its own transaction.
   */
  private async completeFree(manager: EntityManager, requests: CompletionRequest[]): Promise<(MovieOrder | null)[]> {
    const ids = requests.map(({ key }) => orderIdOf(key) ?? '');
    const free = new Map(
      (await lockOrders(manager, [...new Set(ids)], 'leave out')).map((found) => [found.order.id, found]),
    );
    const results = requests.map((request, index) => {
      const found = free.get(ids[index] as string);
      if (!found || effectOfCompletion(found.order.status) !== 'change') return null;
      return setCompleted(found.order, request, found.now);
    });
    const completed = results.filter((order) => order !== null);
    if (completed.length === 0) return results;
    endWithNext(manager, completed.length, [updateOf(manager, completed)]);
    const notified = requests.map(async (request, index) => {
      const order = results[index];
      if (order) await this.emit(manager, order, request, true);
    });
    await allEnded(notified);
    if (endsWithNext(manager)) throw new Error('the listener recorded no notification');
    return results;
  }

  private emit(manager: EntityManager, order: MovieOrder, request: CompletionRequest, isOwn: boolean): Promise<void> {
    const { clientId, notifyUrl, ownerId } = order;
    const data = notificationData(order, request.completion);
    const event = new OrderCompleted(data, clientId, notifyUrl, manager, request.requestId, ownerId);
    // A caller may hide the error of a listener and commit: then no notification may have been recorded.
    return this.events.completed(event, isOwn ? 'first' : 'last');
  }
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
  if (!isSame) throw otherCompletion();
  return order;
}

export const otherCompletion = (): Problem => conflict('the order is already completed with other values');

export const unknownOrder = (key: string): Problem => notFound(`there is no order ${String(key).slice(0, 64)}`);

/** Locks orders until the transaction ends, in the order of their ids. `now` is the database's time. */
async function lockOrders(
  manager: EntityManager,
  ids: string[],
  ifLocked: 'wait' | 'leave out',
  before: Statement[] = [],
): Promise<{ order: MovieOrder; now: number }[]> {
  const { byIndex, isOneOf, now } = dialectOf(manager);
  const write = (parameter: Parameter) => `
      SELECT o.*, ${now} AS now FROM ${tableOf(manager, MovieOrder)} o ${byIndex('PRIMARY')}
      WHERE o.id ${isOneOf(parameter, ids)}
      ORDER BY o.id FOR UPDATE ${ifLocked === 'wait' ? '' : 'SKIP LOCKED'}`;
  const name = ifLocked === 'wait' ? 'usher_lock_order' : 'usher_lock_free_orders';
  const rows = (await runTogether(manager, [...before, { name, write }])).at(-1)?.rows ?? [];
  return rows.map((row) => ({ order: entityOf(manager, MovieOrder, row), now: Number(row.now) }));
}

const COMPLETED = {
  id: 'text',
  status: 'text',
  bookingId: 'text',
  transactionId: 'text',
  qrCode: 'text',
  completedBy: 'text',
  completedFrom: 'text',
  lastUpdatedAt: 'bigint',
} as const;

/** The columns that a completion changes. */
const CHANGES = {
  status: 'v.status',
  booking_id: 'v.bookingId',
  transaction_id: 'v.transactionId',
  qr_code: 'v.qrCode',
  completed_by: 'v.completedBy',
  completed_from: 'v.completedFrom',
  last_updated_at: 'v.lastUpdatedAt',
};

/** Writes what a completion changes. */
function updateOf(manager: EntityManager, orders: MovieOrder[]): Statement {
  const changed = orders.map((order) => ({ ...order }));
  const write = (parameter: Parameter) =>
    dialectOf(manager).update(parameter, tableOf(manager, MovieOrder), COMPLETED, changed, CHANGES);
  return { name: 'usher_complete_orders', write };
}
