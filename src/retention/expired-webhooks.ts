import type { EntityManager } from 'typeorm';
import { databaseNow } from '../database/sql.js';
import { FailingHost } from '../webhooks/contact/failing-host.entity.js';
import { DeliveryFigure } from '../webhooks/figures/delivery-figure.entity.js';
import { WebhookResend } from '../webhooks/undelivered/webhook-resend.entity.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';
import { column, type ExpiringRows, retainedUntil } from './expiring-rows.js';

/**
 * The content of an ended webhook. What was delivered leaves a DeliveredReference, which prevents a second notification for
 * ever. The row goes later (below): a transaction that did not see the reference yet finds the row's live key.
 */
const WEBHOOKS: ExpiringRows = {
  kind: 'webhooks',
  entity: Webhook,
  key: ['id'],
  condition: 'purged_at IS NULL',
  index: 'usher_webhook_retention',
  moment: 'finished_at',
  until: retainedUntil,
  erase: async (manager, rows) => {
    const ids = column(rows, 'id');
    await keepReferences(manager, await manager.findBy(Webhook, { id: ids, status: 'SUCCESS' }));
    // The time of the batch, so that the deletion of the rows can go on where its last batch ended.
    await manager.update(Webhook, { id: ids }, { body: '', notifyUrl: '', purgedAt: await databaseNow(manager) });
    await manager.delete(WebhookAttempt, { webhookId: ids });
  },
};

async function keepReferences(manager: EntityManager, delivered: Webhook[]): Promise<void> {
  if (delivered.length === 0) return;
  const rows = delivered.map(({ id, referenceId, eventType, clientId, ownerId, attempts, finishedAt, createdAt }) => ({
    webhookId: id,
    referenceId,
    eventType,
    clientId,
    ownerId,
    attempts,
    finishedAt: finishedAt ?? createdAt,
  }));
  await manager.insert(DeliveredReference, rows);
}

/** Far longer than any transaction that records a webhook. */
const ROW_MARGIN_MS = 1_800_000;

const WEBHOOK_ROWS: ExpiringRows = {
  kind: 'webhookRows',
  entity: Webhook,
  key: ['id'],
  index: 'usher_webhook_retention',
  moment: 'purged_at',
  until: (now) => now - ROW_MARGIN_MS,
  erase: (manager, rows) => manager.delete(Webhook, { id: column(rows, 'id') }),
};

const RESENDS: ExpiringRows = {
  kind: 'resends',
  entity: WebhookResend,
  key: ['id'],
  index: 'usher_webhook_resend_finished',
  moment: 'finished_at',
  until: retainedUntil,
  erase: (manager, rows) => manager.delete(WebhookResend, { id: column(rows, 'id') }),
};

/** Nothing was sent to such a host for so long that its FAILED notifications are deleted too. */
const FAILING_HOSTS: ExpiringRows = {
  kind: 'failingHosts',
  entity: FailingHost,
  key: ['client_id', 'host'],
  index: 'usher_failing_host_age',
  moment: 'last_failed_at',
  until: retainedUntil,
  erase: (manager, rows) =>
    manager.delete(
      FailingHost,
      rows.map((row) => ({ clientId: row.client_id, host: row.host })),
    ),
};

/** The console shows at most a week of them. */
const MAX_FIGURES_MS = 30 * 86_400_000;

const DELIVERY_FIGURES: ExpiringRows = {
  kind: 'deliveryFigures',
  entity: DeliveryFigure,
  key: ['client_id', 'starts_at', 'host', 'shard'],
  index: 'usher_delivery_figure_period',
  moment: 'starts_at',
  until: (now, { retentionMs }) => now - Math.min(retentionMs, MAX_FIGURES_MS),
  erase: (manager, rows) =>
    manager.delete(
      DeliveryFigure,
      rows.map((row) => ({
        clientId: row.client_id,
        startsAt: Number(row.starts_at),
        host: row.host,
        shard: Number(row.shard),
      })),
    ),
};

/** In the order in which they are deleted. */
export const EXPIRED_WEBHOOKS: ExpiringRows[] = [WEBHOOKS, WEBHOOK_ROWS, RESENDS, FAILING_HOSTS, DELIVERY_FIGURES];
