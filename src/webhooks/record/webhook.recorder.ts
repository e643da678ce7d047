import { Inject, Injectable } from '@nestjs/common';
import DataLoader from 'dataloader';
import type { EntityManager } from 'typeorm';
import { unknownClient } from '../../clients/clients.service.js';
import { AfterCommit, allEnded } from '../../database/sql.js';
import { Problem, unprocessable } from '../../http/problem.js';
import { OnOrderCompleted, type OrderCompleted, SharesTransaction } from '../../events/events.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { type EventType, notificationBody, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { deliveredView, type WebhookView, webhookView } from '../webhook-view.js';
import { DeliveredReference, liveKeyOf, Webhook } from '../webhook.entity.js';
import { Client } from '../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../database/data-source.js';
import { entityOf, insertRows, runStatement, statementFor } from '../../database/statements/statement.js';

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
    const live = rows.length > 0 ? await insertWebhooks(manager, rows) : new Map<string, LiveWebhook>();
    const results = plans.map(async (plan) => {
      if (plan instanceof Problem) return plan;
      if (!isRow(plan)) {
        const delivered = await manager.findOneByOrFail(DeliveredReference, { webhookId: plan.deliveredId });
        return { webhook: deliveredView(delivered), isNew: false };
      }
      const found = live.get(plan.liveKey);
      if (!found) throw new Error(`the webhook of ${plan.liveKey} has disappeared`);
      const { webhook, lastFailureAt } = found;
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

const isRow = (plan: Plan): plan is NewRow => 'liveKey' in plan;

/** The first row of each live key. */
const onePerLiveKey = (rows: NewRow[]): NewRow[] => [
  ...new Map(rows.toReversed().map((row) => [row.liveKey, row])).values(),
];

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

type Key = Pick<Webhook, 'clientId' | 'referenceId' | 'eventType'>;

/** What a new webhook needs, on the database's clock. */
interface Found {
  /** The client's registered Notify URL. */
  registered: string | null;
  now: number;
  /** Set if the reference was delivered so long ago that its webhook is deleted. */
  deliveredId: string | null;
}

const KEY = { position: 'int', client_id: 'text', reference_id: 'text', event_type: 'text' } as const;

/** One query for all that new webhooks need, in their order. Null where there is no such client. */
async function lookUp(manager: EntityManager, keys: readonly Key[]): Promise<(Found | null)[]> {
  const { dataSource } = manager;
  const dialect = dialectOf(dataSource);
  const { sql, parameters } = dialect.rows(
    KEY,
    keys.map(({ clientId, referenceId, eventType }, position) => ({
      position,
      client_id: clientId,
      reference_id: referenceId,
      event_type: eventType,
    })),
  );
  const { rows } = await runStatement(manager, {
    name: 'usher_look_up_webhooks',
    text: `
      SELECT v.position, c.notify_url AS registered, d.webhook_id AS delivered_id, ${dialect.now} AS now
      FROM ${sql} JOIN ${tableOf(dataSource, Client)} c ON c.id = v.client_id
      LEFT JOIN ${tableOf(dataSource, DeliveredReference)} d
        ON d.reference_id = v.reference_id AND d.event_type = v.event_type`,
    parameters,
  });
  const found = new Array<Found | null>(keys.length).fill(null);
  for (const { position, registered, delivered_id: deliveredId, now } of rows)
    found[Number(position)] = {
      registered: registered as string | null,
      deliveredId: deliveredId as string | null,
      now: Number(now),
    };
  return found;
}

/** Inserts the rows whose live key does not exist, and reads those of all. No two of them may have the same one. */
async function insertWebhooks(manager: EntityManager, rows: NewRow[]): Promise<Map<string, LiveWebhook>> {
  // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const onConflict = dialectOf(manager.dataSource).upsert(['live_key'], ['live_key']);
  await insertRows(manager, Webhook, rows, onConflict);
  return liveWebhooks(
    manager,
    rows.map(({ liveKey }) => liveKey),
  );
}

interface LiveWebhook {
  webhook: Webhook;
  /** When the last attempt of an earlier webhook of its reference failed, or null. */
  lastFailureAt: number | null;
}

/**
 * The webhooks of these live keys. Read after the insert: from then on no other webhook of their references makes an attempt.
 * The rows are locked, because a REPEATABLE READ transaction must also see one that was committed after it began. The earlier
 * webhooks are not: gap locks would block others.
 */
async function liveWebhooks(manager: EntityManager, liveKeys: string[]): Promise<Map<string, LiveWebhook>> {
  const { dataSource } = manager;
  const table = tableOf(dataSource, Webhook);
  const { byIndex, isOneOf, lock } = dialectOf(dataSource);
  // A REPEATABLE READ transaction can see a failed webhook as still PENDING. It then failed at the new one's start or before.
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT w.*, (
        SELECT COALESCE(e.finished_at, w.created_at) FROM ${table} e
        WHERE e.reference_id = w.reference_id AND e.event_type = w.event_type AND e.id <> w.id
        ORDER BY e.id DESC LIMIT 1
      ) AS last_failure_at
      FROM ${table} w ${byIndex('usher_webhook_live_key')}
      WHERE w.live_key ${isOneOf(parameter, liveKeys)} ${lock('w')}`,
    'usher_live_webhooks',
  );
  const { rows } = await runStatement(manager, statement);
  return new Map(
    rows.map((row) => {
      const webhook = entityOf(dataSource, Webhook, row);
      const { last_failure_at: at } = row;
      return [String(webhook.liveKey), { webhook, lastFailureAt: at === null ? null : Number(at) }];
    }),
  );
}
