import { type DataSource, type EntityManager, In } from 'typeorm';
import { tableOf } from '../database/data-source.js';
import { runSql } from '../database/statements/statement.js';
import { notFound, type Problem } from '../http/problem.js';
import { NOTIFY_ORDER_COMPLETION } from '../values/notification.js';
import { ID } from '../values/identifier.js';
import {
  type AttemptView,
  attemptView,
  type DeliveryPlan,
  deliveryPlan,
  type OrderDelivery,
  time,
  type WebhookView,
  webhookView,
} from './webhook-view.js';
import type { RetryPolicy } from '../values/retry-schedule.js';
import { DeliveredReference, Webhook, WebhookAttempt, type WebhookStatus } from './webhook.entity.js';

/** A webhook and its attempts, the first one first. */
export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
  /** Null after the webhook has ended. */
  plan: DeliveryPlan | null;
}

/** Which webhooks a list contains; `limit` is at most this many, default 100. */
export interface WebhookFilter {
  referenceId?: string | undefined;
  status?: WebhookStatus | undefined;
  limit?: number | undefined;
}

/** Newest first. */
export async function listWebhooks(
  { manager }: DataSource,
  { referenceId, status, limit = 100 }: WebhookFilter,
): Promise<WebhookView[]> {
  const where = { ...(referenceId !== undefined && { referenceId }), ...(status !== undefined && { status }) };
  const rows = await manager.find(Webhook, { where, order: { id: 'DESC' }, take: limit });
  const found = rows.map(webhookView);
  const canHaveDeleted = referenceId !== undefined && (status ?? 'SUCCESS') === 'SUCCESS';
  if (!canHaveDeleted || found.some((one) => one.status === 'SUCCESS')) return found;
  const deleted = await manager.findBy(DeliveredReference, { referenceId });
  return [...deleted.map(webhookView), ...found].slice(0, limit);
}

/** One webhook with its attempts. 404 if there is none with this id. */
export async function showWebhook({ manager }: DataSource, retry: RetryPolicy, id: string): Promise<WebhookDetails> {
  const webhook = await findWebhook(manager, id);
  if (webhook instanceof DeliveredReference) return { webhook: webhookView(webhook), attempts: [], plan: null };
  const attempts = await manager.find(WebhookAttempt, { where: { webhookId: id }, order: { number: 'ASC' } });
  return {
    webhook: webhookView(webhook),
    attempts: attempts.map((attempt) => attemptView(attempt, webhook)),
    plan: deliveryPlan(retry, webhook, attempts.at(-1)),
  };
}

/** The row of a webhook, or what is left of it. 404 if there is none with this id. */
export async function findWebhook(manager: EntityManager, id: string): Promise<Webhook | DeliveredReference> {
  const found = ID.test(id)
    ? ((await manager.findOneBy(Webhook, { id })) ?? (await manager.findOneBy(DeliveredReference, { webhookId: id })))
    : null;
  if (found) return found;
  throw unknownWebhook(id);
}

export const unknownWebhook = (id: string): Problem => notFound(`there is no webhook ${id.slice(0, 64)}`);

/**
 * What became of the notifications of a client's orders, by reference; one that has none is missing. Two statements at most: of
 * what was delivered long ago, only a narrow row is left.
 */
export async function findDeliveries(
  { manager }: DataSource,
  clientId: string,
  referenceIds: string[],
): Promise<Map<string, OrderDelivery>> {
  if (referenceIds.length === 0) return new Map();
  const eventType = NOTIFY_ORDER_COMPLETION;
  const webhooks = await manager.find(Webhook, {
    select: { id: true, referenceId: true, status: true, attempts: true, finishedAt: true },
    where: { referenceId: In(referenceIds), clientId, eventType },
    order: { id: 'ASC' },
  });
  const found = new Map<string, OrderDelivery>();
  for (const { id, referenceId, status, attempts, finishedAt } of webhooks) {
    const isFinal = found.get(referenceId)?.status === 'SUCCESS';
    if (!isFinal) found.set(referenceId, { webhookId: id, status, attempts, finishedAt: time(finishedAt) });
  }
  const others = referenceIds.filter((referenceId) => !found.has(referenceId));
  const deleted =
    others.length === 0
      ? []
      : await manager.findBy(DeliveredReference, { referenceId: In(others), clientId, eventType });
  for (const { webhookId, referenceId, attempts, finishedAt } of deleted)
    found.set(referenceId, { webhookId, status: 'SUCCESS', attempts, finishedAt: time(finishedAt) });
  return found;
}

/**
 * Counts the PENDING webhooks of a client, but reads at most `most` entries of the index on client and status. So its
 * cost does not depend on how many webhooks there are.
 */
export async function countPending(dataSource: DataSource, clientId: string, most: number): Promise<number> {
  const { rows } = await runSql(
    dataSource,
    (parameter) => `
      SELECT COUNT(*) AS pending FROM (
        SELECT client_id FROM ${tableOf(dataSource, Webhook)}
        WHERE client_id = ${parameter(clientId)} AND status = 'PENDING' LIMIT ${most}) AS counted`,
  );
  return Number(rows[0]?.pending);
}
