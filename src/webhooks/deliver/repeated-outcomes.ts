import { type EntityManager, In } from 'typeorm';
import { dialectOf, tableOf } from '../../database/data-source.js';
import { runSql } from '../../database/statements/statement.js';
import { endOf, outcomeOf, type RecordedOutcome } from '../figures/add-outcomes.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { DeliveryState, FinishedAttempt } from './claim.js';

/** What the tables say before attempts are recorded again. */
export interface EarlierRecords {
  /** The ids of those webhooks that have not ended. */
  pending: Set<string>;
  /** The attempts whose outcome is stored, as their webhook's id and their number. */
  stored: Set<string>;
}

/** Locks the webhooks that have not ended, in key order, so that only this transaction ends them. */
export async function readEarlier(manager: EntityManager, finished: FinishedAttempt[]): Promise<EarlierRecords> {
  const { byIndex, isOneOf } = dialectOf(manager);
  const ids = finished.map(({ claim }) => claim.webhook.id);
  const pending = await runSql(
    manager,
    (parameter) => `
      SELECT id FROM ${tableOf(manager, Webhook)} ${byIndex('PRIMARY')}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING' ORDER BY id FOR UPDATE`,
  );
  const stored = await runSql(
    manager,
    (parameter) => `
      SELECT webhook_id, number FROM ${tableOf(manager, WebhookAttempt)}
      WHERE webhook_id ${isOneOf(parameter, ids)} AND duration_ms IS NOT NULL`,
  );
  return {
    pending: new Set(pending.rows.map(({ id }) => String(id))),
    stored: new Set(stored.rows.map(({ webhook_id, number }) => `${webhook_id} ${number}`)),
  };
}

/** What a recording adds to the figures that may have been made before, or whose webhooks other attempts may have ended. */
export function outcomesSince(
  earlier: EarlierRecords,
  finished: FinishedAttempt[],
  after: Map<string, Webhook>,
): RecordedOutcome[] {
  const notEnded = new Set(earlier.pending);
  return finished.map((one) => {
    const { claim, outcome } = one;
    const { id } = claim.webhook;
    const status = endOf(after.get(id)?.status);
    const hasEnded = status === (outcome.kind === 'delivered' ? 'SUCCESS' : 'FAILED') && notEnded.delete(id);
    return outcomeOf(one, !earlier.stored.has(`${id} ${claim.attempt}`), hasEnded ? status : null);
  });
}

export async function rowsOf(manager: EntityManager, finished: FinishedAttempt[]): Promise<Map<string, Webhook>> {
  const rows = await manager.find(Webhook, {
    select: { id: true, status: true, nextAttemptAt: true, finishedAt: true },
    where: { id: In(finished.map(({ claim }) => claim.webhook.id)) },
  });
  return new Map(rows.map((row) => [row.id, row]));
}

export function statesOf(rows: Map<string, Webhook>, finished: FinishedAttempt[]): DeliveryState[] {
  const endTimes = new Set<number | null>(finished.map(({ endedAt }) => endedAt));
  const reported = new Set<string>();
  return finished.map((one) => {
    const row = rows.get(one.claim.webhook.id);
    if (!row) return { status: 'FAILED', nextAttemptAt: null, endedWebhook: false };
    // Two attempts of one webhook may be recorded together; only one of them is reported as the one that ended it.
    const endedWebhook = endTimes.has(row.finishedAt) && !reported.has(row.id);
    reported.add(row.id);
    return { status: row.status, nextAttemptAt: row.nextAttemptAt, endedWebhook };
  });
}
