// The statements of every delivery. They are plain SQL, because TypeORM's query builder and its entities cost this
// process more than the statements themselves.
import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { nowExpression } from '../../database/sql.js';
import { FailingHost } from '../contact/failing-host.entity.js';
import { diagnosisCodeOf, errorOf } from '../transport/outcome.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { ClaimedWebhook, FinishedAttempt } from './attempt.js';

interface DueRow {
  id: string;
  reference_id: string;
  client_id: string;
  notify_url: string;
  body: string;
  attempts: number;
  created_at: string | number;
  resend_of: string | null;
  request_id: string | null;
  now: string | number;
  has_failing_host: boolean | number;
}

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
  const rows = await manager.sql<DueRow[]>`
    SELECT id, reference_id, client_id, notify_url, body, attempts, created_at, resend_of, request_id, ${() => now} AS now,
      EXISTS (SELECT 1 FROM ${() => tableOf(dataSource, FailingHost)} f WHERE f.client_id = w.client_id) AS has_failing_host
    FROM ${() => tableOf(dataSource, Webhook)} w ${() => byKey}
    WHERE id IN (${() => [...ids].sort()}) AND status = 'PENDING'
      AND attempts < ${maxAttempts} AND next_attempt_at <= ${() => now}
    ORDER BY id FOR UPDATE SKIP LOCKED`;
  return rows.map((row) => ({
    webhook: claimedWebhook(row),
    attempt: row.attempts + 1,
    hasFailingHost: Boolean(row.has_failing_host),
    databaseMs: Number(row.now),
  }));
}

const claimedWebhook = (row: DueRow): ClaimedWebhook => ({
  id: row.id,
  referenceId: row.reference_id,
  clientId: row.client_id,
  notifyUrl: row.notify_url,
  body: row.body,
  createdAt: Number(row.created_at),
  resendOf: row.resend_of,
  requestId: row.request_id,
});

/** Counts an attempt of each locked webhook, which is the next one at `leaseUntil` if this process stops, and records it. */
export async function beginAttempts(manager: EntityManager, due: DueWebhook[], leaseUntil: number): Promise<void> {
  const table = (entity: typeof Webhook | typeof WebhookAttempt) => tableOf(manager.dataSource, entity);
  await manager.sql`
    UPDATE ${() => table(Webhook)} SET attempts = attempts + 1, next_attempt_at = ${leaseUntil}
    WHERE id IN (${() => due.map(({ webhook }) => webhook.id)})`;
  const rows = due.map(({ webhook, attempt, databaseMs }) => [webhook.id, attempt, databaseMs]);
  await manager.query(
    `INSERT INTO ${table(WebhookAttempt)} (webhook_id, number, started_at) VALUES ${tuples(manager, rows)}`,
    rows.flat(),
  );
}

/** Ends those of the webhooks that are PENDING. Returns how many it ended. */
export async function endDelivered(manager: EntityManager, ids: string[], finishedAt: number): Promise<number> {
  const result = await manager.sql<{ affectedRows: number } | [unknown, number]>`
    UPDATE ${() => tableOf(manager.dataSource, Webhook)}
    SET status = 'SUCCESS', next_attempt_at = NULL, finished_at = ${finishedAt}
    WHERE id IN (${() => ids}) AND status = 'PENDING'`;
  return Array.isArray(result) ? result[1] : result.affectedRows;
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
  const isPostgres = manager.dataSource.options.type === 'postgres';
  const onConflict = isPostgres
    ? `ON CONFLICT (webhook_id, number) DO UPDATE SET ${assignments((column) => `EXCLUDED.${column}`)}`
    : `ON DUPLICATE KEY UPDATE ${assignments((column) => `VALUES(${column})`)}`;
  await manager.query(
    `INSERT INTO ${tableOf(manager.dataSource, WebhookAttempt)} (webhook_id, number, started_at, ${RESULT_COLUMNS.join(', ')})
     VALUES ${tuples(manager, rows)} ${onConflict}`,
    rows.flat(),
  );
}

const assignments = (valueOf: (column: string) => string): string =>
  RESULT_COLUMNS.map((column) => `${column} = ${valueOf(column)}`).join(', ');

/** The parameters of the rows as the list of a VALUES clause. */
function tuples({ dataSource }: EntityManager, rows: unknown[][]): string {
  let count = 0;
  const parameter = (): string => dataSource.driver.createParameter('', count++);
  return rows.map((row) => `(${row.map(parameter).join(', ')})`).join(', ');
}
