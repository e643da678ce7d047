import type { DataSource, EntityManager } from 'typeorm';
import { notFound } from '../http/problem.js';
import { ID } from '../values/identifier.js';
import { type AttemptView, attemptView, deliveredView, type WebhookView, webhookView } from './webhook-view.js';
import { DeliveredReference, Webhook, WebhookAttempt, type WebhookStatus } from './webhook.entity.js';

/** A webhook and its attempts, the first one first. */
export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
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
  return [...deleted.map(deliveredView), ...found].slice(0, limit);
}

/** One webhook with its attempts. 404 if there is none with this id. */
export async function showWebhook({ manager }: DataSource, id: string): Promise<WebhookDetails> {
  const webhook = await getWebhook(manager, id);
  const attempts = await manager.find(WebhookAttempt, { where: { webhookId: id }, order: { number: 'ASC' } });
  return { webhook, attempts: attempts.map(attemptView) };
}

/** 404 if there is none with this id. */
export async function getWebhook(manager: EntityManager, id: string): Promise<WebhookView> {
  const webhook = ID.test(id) ? await manager.findOneBy(Webhook, { id }) : null;
  if (webhook) return webhookView(webhook);
  const delivered = ID.test(id) ? await manager.findOneBy(DeliveredReference, { webhookId: id }) : null;
  if (delivered) return deliveredView(delivered);
  throw notFound(`there is no webhook ${id.slice(0, 64)}`);
}
