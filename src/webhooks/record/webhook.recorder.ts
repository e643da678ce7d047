import { Inject, Injectable } from '@nestjs/common';
import DataLoader from 'dataloader';
import type { EntityManager } from 'typeorm';
import { unknownClient } from '../../clients/clients.service.js';
import { AfterCommit, allEnded } from '../../database/sql.js';
import { Problem, unprocessable } from '../../http/problem.js';
import { OnOrderCompleted, type OrderCompleted, SharesTransaction } from '../../events/events.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { notificationBody, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { DeliveredReference, liveKeyOf, Webhook } from '../webhook.entity.js';
import { Client } from '../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../database/data-source.js';
import {
  entityOf,
  insertOf,
  type Row,
  runStatement,
  runTogether,
  type Statement,
  statementOf,
} from '../../database/statements/statement.js';

type Key = Pick<Webhook, 'clientId' | 'referenceId' | 'eventType'>;

interface NewWebhook extends Key, Pick<Webhook, 'ownerId' | 'body' | 'resendOf' | 'requestId'> {
  /** Null: use the client's registered Notify URL. */
  notifyUrl: string | null;
}

/** If `isNew` is false, `webhook` is the earlier one, or what is left of it. */
export type Recorded = { webhook: Webhook; isNew: boolean } | { webhook: DeliveredReference; isNew: false };

type NewRow = Webhook & { liveKey: string };

/** A row to insert, the id of a webhook that was delivered long ago, or why nothing is inserted. */
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
   * The unique live key decides between concurrent callers. The purge deletes a row with a live key only long after it
   * wrote the DeliveredReference, so one of the two is always found.
   */
  private async recordAll(manager: EntityManager, requests: readonly NewWebhook[]): Promise<(Recorded | Problem)[]> {
    const found = await lookUp(manager, requests);
    const plans = requests.map((request, position) => this.planFor(request, found.get(position)));
    const live = await insertWebhooks(manager, plans.filter(isRow));
    return allEnded(
      plans.map((plan) => (isRow(plan) ? this.recorded(manager, plan, live) : notInserted(manager, plan))),
    );
  }

  private planFor(request: NewWebhook, found: Row | undefined): Plan {
    const { clientId } = request;
    if (!found) return unknownClient(clientId);
    // Set if the reference was delivered so long ago that its webhook is deleted.
    const deliveredId = found.delivered_id as string | null;
    if (deliveredId !== null) return { deliveredId };
    const notifyUrl = request.notifyUrl ?? (found.registered as string | null);
    if (notifyUrl === null)
      return unprocessable(
        `client ${clientId} has no Notify URL; set one with PUT /client/notify-url, or ask the operator`,
      );
    const now = Number(found.now);
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

  private async recorded(
    manager: EntityManager,
    { id, liveKey }: NewRow,
    live: Awaited<ReturnType<typeof liveWebhooks>>,
  ): Promise<Recorded> {
    const found = live.get(liveKey);
    if (!found) throw new Error(`the webhook of ${liveKey} has disappeared`);
    const { webhook, lastFailureAt } = found;
    const isNew = webhook.id === id;
    if (isNew) await this.schedule(manager, webhook, lastFailureAt);
    return { webhook, isNew };
  }

  /** Due at once, but not within the minimum interval after the last attempt of an earlier FAILED webhook. */
  private async schedule(manager: EntityManager, webhook: Webhook, lastFailureAt: number | null): Promise<void> {
    const { id, createdAt } = webhook;
    const nextAttemptAt = Math.max(createdAt, (lastFailureAt ?? -Infinity) + this.options.retry.minIntervalMs);
    if (nextAttemptAt > createdAt) await manager.update(Webhook, { id }, { nextAttemptAt });
    webhook.nextAttemptAt = nextAttemptAt;
    this.afterCommit.do(manager, () => this.queue.enqueue(webhook, nextAttemptAt - createdAt));
  }
}

const isRow = (plan: Plan): plan is NewRow => 'liveKey' in plan;

async function notInserted(manager: EntityManager, plan: Exclude<Plan, NewRow>): Promise<Recorded | Problem> {
  if (plan instanceof Problem) return plan;
  const webhook = await manager.findOneByOrFail(DeliveredReference, { webhookId: plan.deliveredId });
  return { webhook, isNew: false };
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

const KEY = { position: 'int', clientId: 'text', referenceId: 'text', eventType: 'text' } as const;

/**
 * One query for all that new webhooks need, by their position: `registered` is the client's Notify URL, and `now` is on the
 * database's clock. A client that does not exist has no entry.
 */
async function lookUp(manager: EntityManager, keys: readonly Key[]): Promise<Map<number, Row>> {
  const dialect = dialectOf(manager);
  const { sql, parameters } = dialect.rows(
    KEY,
    keys.map((key, position) => ({ ...key, position })),
  );
  const { rows } = await runStatement(manager, {
    name: 'usher_look_up_webhooks',
    text: `
      SELECT v.position, c.notify_url AS registered, d.webhook_id AS delivered_id, ${dialect.now} AS now
      FROM ${sql} JOIN ${tableOf(manager, Client)} c ON c.id = v.clientId
      LEFT JOIN ${tableOf(manager, DeliveredReference)} d
        ON d.reference_id = v.referenceId AND d.event_type = v.eventType`,
    parameters,
  });
  return new Map(rows.map((row) => [Number(row.position), row]));
}

/** Inserts the first row of each live key that does not exist, and reads the webhooks of all of them. */
async function insertWebhooks(manager: EntityManager, rows: NewRow[]): ReturnType<typeof liveWebhooks> {
  if (rows.length === 0) return new Map();
  const byKey = new Map(rows.toReversed().map((row) => [row.liveKey, row]));
  // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const onConflict = dialectOf(manager).upsert(['live_key'], ['live_key']);
  const insert = insertOf(manager, Webhook, [...byKey.values()], onConflict);
  return liveWebhooks(manager, insert, [...byKey.keys()]);
}

/**
 * The webhooks of these live keys. Read after the insert: from then on no other webhook of their references makes an
 * attempt. The rows are locked, because a REPEATABLE READ transaction must also see one that was committed after it began.
 * Earlier webhooks are not locked: gap locks would block others.
 */
async function liveWebhooks(manager: EntityManager, insert: Statement, liveKeys: string[]) {
  const table = tableOf(manager, Webhook);
  const { byIndex, isOneOf, lock } = dialectOf(manager);
  // A REPEATABLE READ transaction can see a failed webhook as still PENDING. It failed before the new one was created, or
  // at that time.
  const read = statementOf(
    manager,
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
  const rows = (await runTogether(manager, [insert, read])).at(-1)?.rows ?? [];
  return new Map(
    rows.map((row) => {
      const webhook = entityOf(manager, Webhook, row);
      /** When the last attempt of an earlier webhook of its reference failed, or null. */
      const lastFailureAt = row.last_failure_at === null ? null : Number(row.last_failure_at);
      return [String(webhook.liveKey), { webhook, lastFailureAt }] as const;
    }),
  );
}
