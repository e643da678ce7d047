// The statements of every delivery.
import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { nowExpression } from '../../database/sql.js';
import { isOneOf, valueList } from '../../database/statements/row-list.js';
import { type Row, runStatement, statementFor } from '../../database/statements/statement.js';
import { FailingHost } from '../contact/failing-host.entity.js';
import { diagnosisCodeOf, errorOf } from '../transport/outcome.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { ClaimedWebhook, FinishedAttempt } from './attempt.js';

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
  const now = nowExpression(dataSource);
  // Without the hint MySQL scans a small table instead of using the key, and locks every row it reads.
  const byKey = dataSource.options.type === 'postgres' ? '' : 'FORCE INDEX (PRIMARY)';
  const statement = statementFor(
    dataSource,
    (parameter) => `
      SELECT id, reference_id, client_id, notify_url, body, attempts, created_at, resend_of, request_id, ${now} AS now,
        EXISTS (SELECT 1 FROM ${tableOf(dataSource, FailingHost)} f WHERE f.client_id = w.client_id) AS has_failing_host
      FROM ${tableOf(dataSource, Webhook)} w ${byKey}
      WHERE id ${isOneOf(dataSource, parameter, ids)} AND status = 'PENDING'
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
  const ids = due.map(({ webhook }) => webhook.id);
  const statement = statementFor(
    dataSource,
    (parameter) => `
      UPDATE ${tableOf(dataSource, Webhook)} SET attempts = attempts + 1, next_attempt_at = ${parameter(leaseUntil)}
      WHERE id ${isOneOf(dataSource, parameter, ids)}`,
    'usher_begin_attempts',
  );
  await runStatement(manager, statement);
  const { sql, parameters } = valueList(
    dataSource,
    due.map(({ webhook, attempt, databaseMs }) => [webhook.id, attempt, databaseMs]),
  );
  const text = `INSERT INTO ${tableOf(dataSource, WebhookAttempt)} (webhook_id, number, started_at) VALUES ${sql}`;
  await runStatement(manager, { text, parameters });
}

/** Ends those of the webhooks that are PENDING. Returns how many it ended. */
export async function endDelivered(manager: EntityManager, ids: string[], finishedAt: number): Promise<number> {
  const { dataSource } = manager;
  const statement = statementFor(
    dataSource,
    (parameter) => `
      UPDATE ${tableOf(dataSource, Webhook)}
      SET status = 'SUCCESS', next_attempt_at = NULL, finished_at = ${parameter(finishedAt)}
      WHERE id ${isOneOf(dataSource, parameter, ids)} AND status = 'PENDING'`,
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
  const isPostgres = dataSource.options.type === 'postgres';
  const onConflict = isPostgres
    ? `ON CONFLICT (webhook_id, number) DO UPDATE SET ${assignments((column) => `EXCLUDED.${column}`)}`
    : `ON DUPLICATE KEY UPDATE ${assignments((column) => `VALUES(${column})`)}`;
  const { sql, parameters } = valueList(dataSource, rows);
  await runStatement(manager, {
    text: `
      INSERT INTO ${tableOf(dataSource, WebhookAttempt)} (webhook_id, number, started_at, ${RESULT_COLUMNS.join(', ')})
      VALUES ${sql} ${onConflict}`,
    parameters,
  });
}

const assignments = (valueOf: (column: string) => string): string =>
  RESULT_COLUMNS.map((column) => `${column} = ${valueOf(column)}`).join(', ');
