import { Inject, Injectable } from '@nestjs/common';
import DataLoader from 'dataloader';
import type { EntityManager } from 'typeorm';
import { unknownClient } from '../../clients/clients.service.js';
import { AfterCommit } from '../../database/after-commit.js';
import { allEnded } from '../../database/sql.js';
import { Problem, unprocessable } from '../../http/problem.js';
import { OnOrderCompleted, type OrderCompleted, SharesTransaction } from '../../events/events.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { type EventType, notificationBody, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { deliveredView, type WebhookView, webhookView } from '../webhook-view.js';
import { DeliveredReference, Webhook } from '../webhook.entity.js';
import { type Found, insertWebhooks, type LiveWebhook, liveWebhooks, lookUp } from './record-statements.js';

interface NewWebhook {
  referenceId: string;
  eventType: EventType;
  clientId: string;
  /** The resource owner of the order, or null. */
  ownerId: string | null;
  /** Null: use the client's registered Notify URL. */
  notifyUrl: string | null;
  body: string;
  resendOf: string | null;
  requestId: string | null;
}

export interface Recorded {
  webhook: WebhookView;
  /** False if there was one already; `webhook` is then that one. */
  isNew: boolean;
}

type NewRow = Webhook & { liveKey: string };

/** A row to insert, the webhook that was delivered long ago, or why there is none. */
type Plan = NewRow | { deliveredId: string } | Problem;

/** Writes webhooks in the caller's transaction and adds their jobs after the commit. */
@Injectable()
export class WebhookRecorder {
  private readonly loaders = new WeakMap<EntityManager, DataLoader<NewWebhook, Recorded>>();

  constructor(
    private readonly afterCommit: AfterCommit,
    private readonly queue: DeliveryQueue,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Records a new webhook, or returns the earlier one of this reference and event that is PENDING or SUCCESS
   * (specification 6.3). Webhooks of one transaction that are recorded in the same turn of the event loop share their
   * statements.
   */
  record(manager: EntityManager, request: NewWebhook): Promise<Recorded> {
    let loader = this.loaders.get(manager);
    if (!loader) {
      loader = new DataLoader<NewWebhook, Recorded>((requests) => this.recordAll(manager, requests), { cache: false });
      this.loaders.set(manager, loader);
    }
    return loader.load(request);
  }

  /**
   * The unique live key decides between concurrent callers. A row with a live key that the purge deletes left a
   * DeliveredReference long before, so the look-up before the insert finds one of the two.
   */
  private async recordAll(manager: EntityManager, requests: readonly NewWebhook[]): Promise<(Recorded | Problem)[]> {
    const found = await lookUp(manager, requests);
    const plans = requests.map((request, index) => this.planFor(request, found[index] ?? null));
    const rows = onePerLiveKey(plans.filter(isRow));
    if (rows.length > 0) await insertWebhooks(manager, rows);
    const live = rows.length > 0 ? await liveWebhooks(manager, keysOf(rows)) : new Map<string, LiveWebhook>();
    const results = plans.map(async (plan) => {
      if (plan instanceof Problem) return plan;
      if (!isRow(plan)) return { webhook: await deliveredEarlier(manager, plan.deliveredId), isNew: false };
      const { webhook, lastFailureAt } = live.get(plan.liveKey) ?? hasDisappeared(plan);
      const isNew = webhook.id === plan.id;
      if (isNew) await this.schedule(manager, webhook, lastFailureAt);
      return { webhook: webhookView(webhook), isNew };
    });
    return allEnded(results);
  }

  /** The row to insert, or why none is inserted. */
  private planFor(request: NewWebhook, found: Found | null): Plan {
    const { clientId } = request;
    if (!found) return unknownClient(clientId);
    const { registered, deliveredId, now } = found;
    if (deliveredId !== null) return { deliveredId };
    const notifyUrl = request.notifyUrl ?? registered;
    if (notifyUrl === null)
      return unprocessable(`client ${clientId} has no Notify URL; set one with "usher client set-notify-url"`);
    return {
      ...request,
      id: newId(this.options.environment, now),
      liveKey: liveKeyOf(request),
      notifyUrl,
      usesClientUrl: request.notifyUrl === null,
      status: 'PENDING',
      attempts: 0,
      nextAttemptAt: now,
      createdAt: now,
      finishedAt: null,
      purgedAt: null,
    };
  }

  /** Due at once, but not within the minimum interval after the last attempt of an earlier FAILED webhook. */
  private async schedule(manager: EntityManager, webhook: Webhook, lastFailureAt: number | null): Promise<void> {
    const { id, createdAt } = webhook;
    const earliest = lastFailureAt === null ? createdAt : lastFailureAt + this.options.retry.minIntervalMs;
    const nextAttemptAt = Math.max(createdAt, earliest);
    if (nextAttemptAt > createdAt) await manager.update(Webhook, { id }, { nextAttemptAt });
    webhook.nextAttemptAt = nextAttemptAt;
    this.afterCommit.do(manager, () => this.queue.enqueue(webhook, nextAttemptAt - createdAt));
  }
}

/** The unique key of the one webhook of a reference that is PENDING or SUCCESS. */
export const liveKeyOf = ({ eventType, referenceId }: Pick<Webhook, 'eventType' | 'referenceId'>): string =>
  `${eventType}:${referenceId}`;

const deliveredEarlier = async (manager: EntityManager, webhookId: string): Promise<WebhookView> =>
  deliveredView(await manager.findOneByOrFail(DeliveredReference, { webhookId }));

const isRow = (plan: Plan): plan is NewRow => 'liveKey' in plan;

const keysOf = (rows: NewRow[]): string[] => rows.map(({ liveKey }) => liveKey);

/** The first row of each live key. */
const onePerLiveKey = (rows: NewRow[]): NewRow[] => [
  ...new Map(rows.toReversed().map((row) => [row.liveKey, row])).values(),
];

function hasDisappeared({ liveKey }: NewRow): never {
  throw new Error(`the webhook of ${liveKey} has disappeared`);
}

/** Writes the webhook in the order's transaction: both are committed or neither is. */
@Injectable()
export class OrderCompletedListener {
  constructor(private readonly recorder: WebhookRecorder) {}

  @OnOrderCompleted()
  @SharesTransaction()
  async record({ order, clientId, ownerId, notifyUrl, manager, requestId }: OrderCompleted): Promise<void> {
    await this.recorder.record(manager, {
      referenceId: order.key,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId,
      ownerId,
      notifyUrl,
      body: notificationBody(NOTIFY_ORDER_COMPLETION, order),
      resendOf: null,
      requestId,
    });
  }
}
