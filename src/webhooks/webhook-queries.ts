import { z } from 'zod';
import { And, type DataSource, type EntityManager, In, LessThan, MoreThanOrEqual, Raw } from 'typeorm';
import { heldBy, type Holder } from '../auth/bearer/bearer.guard.js';
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
  WebhookView,
  webhookView,
} from './webhook-view.js';
import type { RetryPolicy } from '../values/retry-schedule.js';
import { sentAgain } from './search/webhook-criteria.js';
import { DeliveredReference, liveKeyOf, Webhook, WebhookAttempt } from './webhook.entity.js';

/** A webhook and its attempts, the first one first. */
export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
  /** Null after the webhook has ended, and while it is held. */
  plan: DeliveryPlan | null;
}

export const WebhookFilter = z.strictObject({
  referenceId: z.string().optional(),
  status: WebhookView.shape.status.optional(),
  limit: z.int().min(0).optional(),
});
/** Which webhooks a list contains. The default of `limit` is 100. */
export type WebhookFilter = z.infer<typeof WebhookFilter>;

export interface WebhookPart extends WebhookFilter {
  /** Only the webhooks of this client, and of this resource owner unless it is null. */
  holder?: Holder;
  /** Created at this time or later, as RFC 3339 text. */
  createdAfter?: string | undefined;
  createdBefore?: string | undefined;
  /** Only FAILED webhooks that a later webhook of the same order followed, or did not follow. */
  resent?: 'true' | 'false' | undefined;
  /** Only smaller ids. */
  cursor?: string | undefined;
}

/** The columns of a {@link WebhookView}: without the body, which may be long. */
const SHOWN = Object.fromEntries(
  Object.keys({
    ...WebhookView.omit({ attemptCount: true, resentAs: true, pausedSince: true }).shape,
    attempts: 0,
  }).map((name) => [name, true]),
);

/**
 * Newest first. Ids sort by time, so a page does not change when new webhooks arrive. With `referenceId`, a delivered
 * webhook whose row was deleted because of its age is listed too.
 */
export async function listWebhooks(
  dataSource: DataSource,
  {
    holder,
    referenceId,
    resent,
    status = resent && 'FAILED',
    createdAfter,
    createdBefore,
    cursor,
    limit = 100,
  }: WebhookPart,
): Promise<WebhookView[]> {
  const { manager } = dataSource;
  const whose = {
    ...(holder && heldBy(holder)),
    ...(referenceId !== undefined && { referenceId }),
  };
  const times = [
    ...(createdAfter ? [MoreThanOrEqual(Date.parse(createdAfter))] : []),
    ...(createdBefore ? [LessThan(Date.parse(createdBefore))] : []),
  ];
  const isResent = Raw(() => sentAgain(dataSource, resent === 'true', dataSource.driver.escape(Webhook.name)));
  const part = {
    ...(times.length > 0 && { createdAt: And(...times) }),
    ...(cursor && { id: LessThan(cursor) }),
    // The condition concerns the whole row, but TypeORM needs a column for it.
    ...(resent && { eventType: isResent }),
  };
  const where = { ...whose, ...(status && { status }), ...part };
  const rows = await manager.find(Webhook, { select: SHOWN, where, order: { id: 'DESC' }, take: limit });
  const found = await withResentAs(manager, rows.map(webhookView));
  const isWhole = Object.keys(part).length === 0 && (status ?? 'SUCCESS') === 'SUCCESS';
  if (referenceId === undefined || !isWhole || found.some((one) => one.status === 'SUCCESS')) return found;
  const deleted = await manager.findBy(DeliveredReference, whose);
  return [...deleted.map(webhookView), ...found].slice(0, limit);
}

/** For each FAILED one the last webhook of its order, if that one is later; else null. At most one query. */
export async function laterOnes(manager: EntityManager, webhooks: WebhookView[]): Promise<(Webhook | null)[]> {
  const failed = webhooks.filter(({ status }) => status === 'FAILED');
  const others = await webhooksOf(
    manager,
    failed.map(({ referenceId }) => referenceId),
  );
  const last = new Map(others.map((other) => [liveKeyOf(other), other]));
  return webhooks.map((one) => {
    const other = last.get(liveKeyOf(one));
    return other && other.id > one.id ? other : null;
  });
}

async function withResentAs(manager: EntityManager, webhooks: WebhookView[]): Promise<WebhookView[]> {
  const later = await laterOnes(manager, webhooks);
  return webhooks.map((one, index) => ({ ...one, resentAs: later[index]?.id ?? null }));
}

/** The webhooks of these ids, the newest first, without their bodies. */
export const webhooksById = (manager: EntityManager, ids: string[]): Promise<Webhook[]> =>
  manager.find(Webhook, { select: SHOWN, where: { id: In(ids) }, order: { id: 'DESC' } });

export async function webhooksOf(manager: EntityManager, referenceIds: string[]): Promise<Webhook[]> {
  if (referenceIds.length === 0) return [];
  return manager.find(Webhook, {
    select: { ...SHOWN, liveKey: true },
    where: { referenceId: In([...new Set(referenceIds)]) },
    order: { id: 'ASC' },
  });
}

/** One webhook with its attempts. 404 if there is none with this id. */
export async function showWebhook({ manager }: DataSource, retry: RetryPolicy, id: string): Promise<WebhookDetails> {
  const row = await findWebhook(manager, id);
  const details = detailsOf(row, await attemptsOf(manager, row), retry);
  const [webhook = details.webhook] = await withResentAs(manager, [details.webhook]);
  return { ...details, webhook };
}

/** The first one first. None are left of a delivered webhook whose row was deleted. */
export async function attemptsOf(
  manager: EntityManager,
  webhook: Webhook | DeliveredReference,
): Promise<WebhookAttempt[]> {
  if (webhook instanceof DeliveredReference) return [];
  return manager.find(WebhookAttempt, { where: { webhookId: webhook.id }, order: { number: 'ASC' } });
}

export function detailsOf(
  row: Webhook | DeliveredReference,
  attempts: WebhookAttempt[],
  retry: RetryPolicy,
): WebhookDetails {
  const webhook = webhookView(row);
  return {
    webhook,
    attempts: attempts.map((attempt) => attemptView(attempt, webhook)),
    plan: row instanceof DeliveredReference ? null : deliveryPlan(retry, row, attempts.at(-1)),
  };
}

/** The row of a webhook, or what is left of it. 404 if there is none with this id. */
export async function findWebhook(manager: EntityManager, id: string): Promise<Webhook | DeliveredReference> {
  const found = await rowOf(manager, id);
  if (found) return found;
  throw unknownWebhook(id);
}

/** The row of a webhook, or what is left of it, or null. */
export async function rowOf(manager: EntityManager, id: string): Promise<Webhook | DeliveredReference | null> {
  if (!ID.test(id)) return null;
  return (await manager.findOneBy(Webhook, { id })) ?? manager.findOneBy(DeliveredReference, { webhookId: id });
}

export const unknownWebhook = (id: string): Problem => notFound(`there is no webhook ${String(id).slice(0, 64)}`);

/**
 * The state of the notifications of a client's orders, by reference. An order without a notification is missing. The second
 * statement reads notifications whose rows were deleted because of their age.
 */
export async function findDeliveries(
  { manager }: DataSource,
  clientId: string,
  referenceIds: string[],
): Promise<Map<string, OrderDelivery>> {
  const found = new Map<string, OrderDelivery>();
  const add = (rows: (Webhook | DeliveredReference)[]): void => {
    for (const { id: webhookId, referenceId, status, attemptCount, finishedAt, ...of } of rows.map(webhookView)) {
      const isOrders = of.clientId === clientId && of.eventType === NOTIFY_ORDER_COMPLETION;
      const isKnown = found.get(referenceId)?.status === 'SUCCESS';
      if (isOrders && !isKnown) found.set(referenceId, { webhookId, status, attemptCount, finishedAt });
    }
  };
  add(await webhooksOf(manager, referenceIds));
  const others = referenceIds.filter((referenceId) => !found.has(referenceId));
  if (others.length > 0) add(await manager.findBy(DeliveredReference, { referenceId: In(others) }));
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
