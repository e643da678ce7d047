import type { EntityManager } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { unknownClient } from '../../clients/clients.service.js';
import { tableOf } from '../../database/data-source.js';
import { insertRows } from '../../database/statements/insert-rows.js';
import { nowExpression } from '../../database/sql.js';
import { entityOf, runStatement, statementFor } from '../../database/statements/statement.js';
import { DeliveredReference, Webhook } from '../webhook.entity.js';

type Key = Pick<Webhook, 'clientId' | 'referenceId' | 'eventType'>;

interface Found {
  /** The client's registered Notify URL. */
  registered: string | null;
  /** By the database's clock. */
  now: number;
  /** Set if the reference was delivered so long ago that its webhook is deleted. */
  deliveredId: string | null;
}

/** One query for all that a new webhook needs. */
export async function lookUp(manager: EntityManager, { clientId, referenceId, eventType }: Key): Promise<Found> {
  const { dataSource } = manager;
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT c.notify_url AS registered, d.webhook_id AS delivered_id, ${nowExpression(dataSource)} AS now
      FROM ${tableOf(dataSource, Client)} c LEFT JOIN ${tableOf(dataSource, DeliveredReference)} d
        ON d.reference_id = ${parameter(referenceId)} AND d.event_type = ${parameter(eventType)}
      WHERE c.id = ${parameter(clientId)}`,
    'usher_look_up_webhook',
  );
  const [row] = (await runStatement(manager, statement)).rows;
  if (!row) throw unknownClient(clientId);
  const { registered, delivered_id: deliveredId, now } = row;
  return { registered: registered as string | null, deliveredId: deliveredId as string | null, now: Number(now) };
}

/** Inserts the row unless its live key exists. */
export async function insertWebhook(manager: EntityManager, row: Webhook): Promise<void> {
  // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const isPostgres = manager.dataSource.options.type === 'postgres';
  const onConflict = isPostgres
    ? 'ON CONFLICT (live_key) DO UPDATE SET live_key = EXCLUDED.live_key'
    : 'ON DUPLICATE KEY UPDATE live_key = VALUES(live_key)';
  await insertRows(manager, Webhook, [row], onConflict);
}

/**
 * The webhook of a live key, and when the last attempt of an earlier webhook of its reference failed, or null. Read after the
 * insert: from then on no other webhook of this reference makes an attempt. The row is locked, because a REPEATABLE READ
 * transaction must also see one that was committed after it began. The earlier one is not: gap locks would block others.
 */
export async function liveWebhook(
  manager: EntityManager,
  liveKey: string,
): Promise<{ webhook: Webhook; lastFailureAt: number | null }> {
  const { dataSource } = manager;
  const table = tableOf(dataSource, Webhook);
  const lock = dataSource.options.type === 'postgres' ? 'FOR UPDATE OF w' : 'FOR UPDATE';
  // A REPEATABLE READ transaction can see a failed webhook as still PENDING. It then failed at the new one's start or before.
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT w.*, (
        SELECT COALESCE(e.finished_at, w.created_at) FROM ${table} e
        WHERE e.reference_id = w.reference_id AND e.event_type = w.event_type AND e.id <> w.id
        ORDER BY e.id DESC LIMIT 1
      ) AS last_failure_at
      FROM ${table} w WHERE w.live_key = ${parameter(liveKey)} ${lock}`,
    'usher_live_webhook',
  );
  const [row] = (await runStatement(manager, statement)).rows;
  if (!row) throw new Error(`the webhook of ${liveKey} has disappeared`);
  const { last_failure_at: at } = row;
  return { webhook: entityOf(dataSource, Webhook, row), lastFailureAt: at === null ? null : Number(at) };
}
