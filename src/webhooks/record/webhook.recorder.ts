import { Inject, Injectable } from '@nestjs/common';
import DataLoader from 'dataloader';
import type { EntityManager } from 'typeorm';
import { unknownClient } from '../../clients/clients.service.js';
import { AfterCommit, allEnded, databaseNow } from '../../database/sql.js';
import { storedRequestId } from '../../http/exchange.js';
import { Problem, unprocessable } from '../../http/problem.js';
import { OnOrderCompleted, type OrderCompleted, SharesTransaction } from '../../events/events.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { notificationBody, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { DeliveredReference, liveKeyOf, Webhook } from '../webhook.entity.js';
import { Client } from '../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../database/data-source.js';
import { endsWithNext, entityOf, runTogether, type Statement } from '../../database/statements/statement.js';

type Key = Pick<Webhook, 'clientId' | 'referenceId' | 'eventType'>;

interface NewWebhook extends Key, Pick<Webhook, 'ownerId' | 'body' | 'resendOf' | 'requestId'> {
  /** Null: use the client's registered Notify URL. */
  notifyUrl: string | null;
  /** The time of its event on the database's clock. Default: now. */
  at?: number;
}

/** If `isNew` is false, `webhook` is the earlier one, or what is left of it. */
export type Recorded = { webhook: Webhook; isNew: boolean } | { webhook: DeliveredReference; isNew: false };

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
      const recordBatch = (requests: readonly NewWebhook[]): Promise<(Recorded | Problem)[]> => {
        // Otherwise the loader would keep the manager in memory until a collection of the old generation.
        this.loaders.delete(manager);
        return this.recordAll(manager, requests);
      };
      loader = new DataLoader<NewWebhook, Recorded>(recordBatch, { cache: false });
      this.loaders.set(manager, loader);
    }
    return loader.load(request);
  }

  /**
   * The unique live key decides between concurrent callers. A row with a live key that the purge deletes left a
   * DeliveredReference long before, so the insert finds one of the two.
   */
  private async recordAll(manager: EntityManager, requests: readonly NewWebhook[]): Promise<(Recorded | Problem)[]> {
    const now = requests.every(({ at }) => at !== undefined) ? 0 : await databaseNow(manager);
    const rows = requests.map(({ at: createdAt = now, ...request }) => ({
      id: newId(this.options.environment, createdAt),
      liveKey: liveKeyOf(request),
      createdAt,
      ...request,
      requestId: storedRequestId(request.requestId),
    }));
    if (endsWithNext(manager)) return this.recordFirst(manager, rows);
    // The first row of each live key.
    const byKey = new Map(rows.toReversed().map((row) => [row.liveKey, row]));
    const live = await liveWebhooks(manager, insertOf(manager, [...byKey.values()], 'live'), [...byKey.keys()]);
    return allEnded(
      rows.map(async (row) => {
        const found = live.get(row.liveKey);
        if (!found) return whyRefused(manager, row);
        const { webhook, lastFailureAt } = found;
        const isNew = webhook.id === row.id;
        if (isNew) await this.schedule(manager, webhook, lastFailureAt);
        return { webhook, isNew };
      }),
    );
  }

  /** The usual case, in one round trip with the end of the transaction, which fails unless all are the first of their references. */
  private async recordFirst(manager: EntityManager, rows: NewRow[]): Promise<Recorded[]> {
    const { byIndex, check, isOneOf } = dialectOf(manager);
    const references = rows.map(({ referenceId }) => referenceId);
    const read: Statement = {
      rows: { found: rows.length },
      write: (parameter) => `
        SELECT id, notify_url FROM ${tableOf(manager, Webhook)} ${byIndex('usher_webhook_reference')}
        WHERE reference_id ${isOneOf(parameter, references)}`,
    };
    // Postgres returns what was inserted.
    const reads = check ? [read] : [];
    const insert = { returning: 'id, notify_url', ...insertOf(manager, rows, 'first') };
    const results = await runTogether(manager, [insert, ...reads]);
    const notifyUrls = new Map(results[reads.length]?.rows.map((row) => [row.id, String(row.notify_url)]));
    return rows.map((row) => {
      const webhook: Webhook = {
        status: 'PENDING',
        attempts: 0,
        finishedAt: null,
        purgedAt: null,
        nextAttemptAt: row.createdAt,
        usesClientUrl: row.notifyUrl === null,
        ...row,
        notifyUrl: notifyUrls.get(row.id) ?? '',
      };
      this.afterCommit.do(manager, () => this.queue.enqueue(webhook, 0));
      return { webhook, isNew: true };
    });
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
      at: Date.parse(order.lastUpdatedAt),
    });
  }
}

const NEW_ROW = {
  id: 'text',
  referenceId: 'text',
  eventType: 'text',
  liveKey: 'text',
  clientId: 'text',
  ownerId: 'text',
  notifyUrl: 'text',
  body: 'text',
  createdAt: 'bigint',
  resendOf: 'text',
  requestId: 'text',
} as const;

type NewRow = NewWebhook & { id: string; liveKey: string; createdAt: number };

/**
 * Inserts the rows. `live`: one whose live key exists is left out; `first`: it must not exist. A row is also left out if it is
 * refused, see {@link whyRefused}.
 */
function insertOf(manager: EntityManager, rows: NewRow[], which: 'live' | 'first'): Statement {
  const dialect = dialectOf(manager);
  // The update changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const onConflict = which === 'live' ? dialect.upsert(['live_key'], ['live_key']) : dialect.ifAbsent;
  const table = tableOf(manager, Webhook);
  // On MySQL, the rows that are read afterwards tell it.
  const isFirst = `AND NOT EXISTS (SELECT 1 FROM ${table} e WHERE e.reference_id = v.referenceId)`;
  const insert = (from: string) => `
      INSERT INTO ${dialect.into(table)} (id, reference_id, event_type, live_key, client_id, owner_id, notify_url,
        uses_client_url, body, status, attempts, next_attempt_at, created_at, resend_of, request_id)
      SELECT v.id, v.referenceId, v.eventType, v.liveKey, c.id, v.ownerId, COALESCE(v.notifyUrl, c.notify_url),
        v.notifyUrl IS NULL, v.body, 'PENDING', 0, v.createdAt, v.createdAt, v.resendOf, v.requestId
      FROM ${from} ${tableOf(manager, Client)} c
      LEFT JOIN ${tableOf(manager, DeliveredReference)} d
        ON d.reference_id = v.referenceId AND d.event_type = v.eventType
      WHERE c.id = v.clientId AND d.webhook_id IS NULL AND COALESCE(v.notifyUrl, c.notify_url) IS NOT NULL
      ${which === 'first' && !dialect.check ? isFirst : ''} ${onConflict}`;
  const values = rows.map((row) => ({ ...row }));
  return {
    name: `usher_insert_webhooks_${which}`,
    write: (parameter) => dialect.withRows(parameter, NEW_ROW, values, insert, 'body'),
  };
}

/** Why a row was not inserted: the client does not exist, its webhook was delivered long ago and deleted, or there is no Notify URL. */
async function whyRefused(manager: EntityManager, row: Key): Promise<Recorded | Problem> {
  const { referenceId, eventType, clientId } = row;
  if (!(await manager.existsBy(Client, { id: clientId }))) return unknownClient(clientId);
  const webhook = await manager.findOneBy(DeliveredReference, { referenceId, eventType });
  if (webhook) return { webhook, isNew: false };
  return unprocessable(
    `client ${clientId} has no Notify URL; set one with PUT /client/notify-url, or ask the operator`,
  );
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
  const read: Statement = {
    name: 'usher_live_webhooks',
    write: (parameter) => `
      SELECT w.*, (
        SELECT COALESCE(e.finished_at, w.created_at) FROM ${table} e
        WHERE e.reference_id = w.reference_id AND e.event_type = w.event_type AND e.id <> w.id
        ORDER BY e.id DESC LIMIT 1
      ) AS last_failure_at
      FROM ${table} w ${byIndex('usher_webhook_live_key')}
      WHERE w.live_key ${isOneOf(parameter, liveKeys)} ${lock('w')}`,
  };
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
