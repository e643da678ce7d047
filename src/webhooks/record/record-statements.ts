import type { EntityManager } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { tableOf } from '../../database/data-source.js';
import { dialectOf } from '../../database/dialect.js';
import { entityOf, insertRows, runStatement, statementFor } from '../../database/statements/statement.js';
import { DeliveredReference, Webhook } from '../webhook.entity.js';

type Key = Pick<Webhook, 'clientId' | 'referenceId' | 'eventType'>;

/** What a new webhook needs, on the database's clock. */
export interface Found {
  /** The client's registered Notify URL. */
  registered: string | null;
  now: number;
  /** Set if the reference was delivered so long ago that its webhook is deleted. */
  deliveredId: string | null;
}

const KEY = { position: 'int', client_id: 'text', reference_id: 'text', event_type: 'text' } as const;

/** One query for all that new webhooks need, in their order. Null where there is no such client. */
export async function lookUp(manager: EntityManager, keys: readonly Key[]): Promise<(Found | null)[]> {
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

/** Inserts the rows whose live key does not exist. No two of them may have the same one. */
export async function insertWebhooks(manager: EntityManager, rows: Webhook[]): Promise<void> {
  // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
  const onConflict = dialectOf(manager.dataSource).upsert(['live_key'], ['live_key']);
  await insertRows(manager, Webhook, rows, onConflict);
}

export interface LiveWebhook {
  webhook: Webhook;
  /** When the last attempt of an earlier webhook of its reference failed, or null. */
  lastFailureAt: number | null;
}

/**
 * The webhooks of these live keys. Read after the insert: from then on no other webhook of their references makes an attempt.
 * The rows are locked, because a REPEATABLE READ transaction must also see one that was committed after it began. The earlier
 * webhooks are not: gap locks would block others.
 */
export async function liveWebhooks(manager: EntityManager, liveKeys: string[]): Promise<Map<string, LiveWebhook>> {
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
