import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import type { RecordedOutcome } from '../figures/add-outcomes.js';
import type { FinalStatus } from '../webhook-ended.event.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { DeliveryState, FinishedAttempt } from './attempt.js';

/** What a recording that is made for the first time adds to the figures. */
export const outcomesOf = (finished: FinishedAttempt[], states: DeliveryState[]): RecordedOutcome[] =>
  finished.map((one, index) => outcomeOf(one, true, endOf(states[index]?.status)));

/** What the tables say before attempts are recorded again. */
export interface EarlierRecords {
  /** The ids of those webhooks that have not ended. */
  pending: Set<string>;
  /** The attempts whose outcome is stored, by {@link attemptKey}. */
  stored: Set<string>;
}

/** Locks the webhooks that have not ended, in key order, so that only this transaction ends them. */
export async function readEarlier(manager: EntityManager, finished: FinishedAttempt[]): Promise<EarlierRecords> {
  const { dataSource } = manager;
  const ids = [...new Set(finished.map(({ claim }) => claim.webhook.id))].sort();
  // Without the hint MySQL scans a small table instead of using the key, and locks every row it reads.
  const byKey = dataSource.options.type === 'postgres' ? '' : 'FORCE INDEX (PRIMARY)';
  const pending = await manager.sql<{ id: string }[]>`
    SELECT id FROM ${() => tableOf(dataSource, Webhook)} ${() => byKey}
    WHERE id IN (${() => ids}) AND status = 'PENDING' ORDER BY id FOR UPDATE`;
  const stored = await manager.sql<{ webhook_id: string; number: number }[]>`
    SELECT webhook_id, number FROM ${() => tableOf(dataSource, WebhookAttempt)}
    WHERE webhook_id IN (${() => ids}) AND duration_ms IS NOT NULL`;
  return {
    pending: new Set(pending.map(({ id }) => id)),
    stored: new Set(stored.map(({ webhook_id, number }) => attemptKey(webhook_id, number))),
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
    return outcomeOf(one, !earlier.stored.has(attemptKey(id, claim.attempt)), hasEnded ? status : null);
  });
}

function outcomeOf(
  { claim, outcome, endedAt }: FinishedAttempt,
  isNew: boolean,
  ended: FinalStatus | null,
): RecordedOutcome {
  const attempt = isNew ? { durationMs: outcome.durationMs, hasFailed: outcome.kind !== 'delivered' } : null;
  return { webhook: claim.webhook, endedAt, attempt, ended };
}

const endOf = (status: Webhook['status'] | undefined): FinalStatus | null =>
  status === undefined || status === 'PENDING' ? null : status;

const attemptKey = (webhookId: string, number: number): string => `${webhookId} ${number}`;
