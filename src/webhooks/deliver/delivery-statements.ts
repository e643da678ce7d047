import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { dialectOf } from '../../database/dialect.js';
import { type Row, runStatement, statementFor } from '../../database/statements/statement.js';
import { FailingHost } from '../contact/failing-host.entity.js';
import { diagnosisCodeOf, errorOf, type Outcome } from '../transport/outcome.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from '../webhook.entity.js';

/** A PENDING webhook whose next attempt is due, with the number of that attempt. */
export interface DueWebhook {
  webhook: ClaimedWebhook;
  attempt: number;
  hasFailingHost: boolean;
  /** The time of the query on the database's clock. */
  databaseMs: number;
}

/** Locks in key order and skips rows that others hold, so that two batches never wait for each other. */
export async function lockDue(manager: EntityManager, ids: string[], maxAttempts: number): Promise<DueWebhook[]> {
  const { dataSource } = manager;
  const { byIndex, isOneOf, now } = dialectOf(dataSource);
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT id, reference_id, client_id, notify_url, body, attempts, created_at, resend_of, request_id, ${now} AS now,
        EXISTS (SELECT 1 FROM ${tableOf(dataSource, FailingHost)} f WHERE f.client_id = w.client_id) AS has_failing_host
      FROM ${tableOf(dataSource, Webhook)} w ${byIndex('PRIMARY')}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING'
        AND attempts < ${parameter(maxAttempts)} AND next_attempt_at <= ${now}
      ORDER BY id FOR UPDATE SKIP LOCKED`,
    'usher_lock_due',
  );
  return (await runStatement(manager, statement)).rows.map((row) => ({
    webhook: claimedWebhook(row),
    attempt: Number(row.attempts) + 1,
    hasFailingHost: Boolean(row.has_failing_host),
    databaseMs: Number(row.now),
  }));
}

const claimedWebhook = (row: Row): ClaimedWebhook => ({
  id: row.id as string,
  referenceId: row.reference_id as string,
  clientId: row.client_id as string,
  notifyUrl: row.notify_url as string,
  body: row.body as string,
  createdAt: Number(row.created_at),
  resendOf: row.resend_of as string | null,
  requestId: row.request_id as string | null,
});

/** Counts an attempt of each locked webhook, which is the next one at `leaseUntil` if this process stops, and records it. */
export async function beginAttempts(manager: EntityManager, due: DueWebhook[], leaseUntil: number): Promise<void> {
  const { dataSource } = manager;
  const { isOneOf, values } = dialectOf(dataSource);
  const ids = due.map(({ webhook }) => webhook.id);
  const statement = statementFor(
    dataSource,
    (parameter) => `
      UPDATE ${tableOf(dataSource, Webhook)} SET attempts = attempts + 1, next_attempt_at = ${parameter(leaseUntil)}
      WHERE id ${isOneOf(parameter, ids)}`,
    'usher_begin_attempts',
  );
  await runStatement(manager, statement);
  const { sql, parameters } = values(due.map(({ webhook, attempt, databaseMs }) => [webhook.id, attempt, databaseMs]));
  const text = `INSERT INTO ${tableOf(dataSource, WebhookAttempt)} (webhook_id, number, started_at) VALUES ${sql}`;
  await runStatement(manager, { text, parameters });
}

/** Ends those of the webhooks that are PENDING. Returns how many it ended. */
export async function endDelivered(manager: EntityManager, ids: string[], finishedAt: number): Promise<number> {
  const { dataSource } = manager;
  const { isOneOf } = dialectOf(dataSource);
  const statement = statementFor(
    dataSource,
    (parameter) => `
      UPDATE ${tableOf(dataSource, Webhook)}
      SET status = 'SUCCESS', next_attempt_at = NULL, finished_at = ${parameter(finishedAt)}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING'`,
    'usher_end_delivered',
  );
  return (await runStatement(manager, statement)).affected;
}

const RESULT_COLUMNS = ['duration_ms', 'phase', 'address', 'response_status', 'error', 'diagnosis', 'response_snippet'];

/** The rows of the attempts exist since the claim; one statement completes them all. */
export async function finishAttempts(manager: EntityManager, finished: FinishedAttempt[]): Promise<void> {
  if (finished.length === 0) return;
  const rows = finished.map(({ claim, outcome }) => [
    claim.webhook.id,
    claim.attempt,
    claim.at.databaseMs,
    Math.round(outcome.durationMs),
    outcome.phase,
    outcome.address,
    'status' in outcome ? outcome.status : null,
    errorOf(outcome),
    diagnosisCodeOf(outcome),
    outcome.snippet || null,
  ]);
  const { dataSource } = manager;
  const { upsert, values } = dialectOf(dataSource);
  const { sql, parameters } = values(rows);
  await runStatement(manager, {
    text: `
      INSERT INTO ${tableOf(dataSource, WebhookAttempt)} (webhook_id, number, started_at, ${RESULT_COLUMNS.join(', ')})
      VALUES ${sql} ${upsert(['webhook_id', 'number'], RESULT_COLUMNS)}`,
    parameters,
  });
}

/** The same moment on the database's clock and on this process's monotonic clock. */
export interface Moment {
  databaseMs: number;
  monotonicMs: number;
}

/** The part of a webhook that an attempt uses. */
export type ClaimedWebhook = Pick<
  Webhook,
  'id' | 'referenceId' | 'clientId' | 'notifyUrl' | 'body' | 'createdAt' | 'resendOf' | 'requestId'
>;

/** The right to make one attempt, which is already counted and recorded. */
export interface Claim {
  webhook: ClaimedWebhook;
  attempt: number;
  at: Moment;
  /** Whether the client had a failing host at the claim. Only then a success may have something to record besides itself. */
  hasFailingHost: boolean;
}

export type ClaimResult =
  | { kind: 'claimed'; claim: Claim }
  | { kind: 'not-due'; inMs: number }
  /** Nothing is left to do: the webhook has ended, or its row was deleted. */
  | { kind: 'ended' };

export interface FinishedAttempt {
  claim: Claim;
  outcome: Outcome;
  /** On the database's clock. */
  endedAt: number;
}

/** The state of a webhook after an attempt was recorded. */
export interface DeliveryState {
  status: WebhookStatus;
  nextAttemptAt: number | null;
  /** Whether this attempt ended the webhook. */
  endedWebhook: boolean;
}
