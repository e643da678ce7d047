import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, LessThanOrEqual, MoreThanOrEqual } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { runSql, runTogether, statementOf } from '../../database/statements/statement.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { leaseUntil, retryRunAt } from '../../values/retry-schedule.js';
import { ClientSecret } from '../../clients/client.entity.js';
import { FailingHost } from '../contact/failing-host.entity.js';
import { hostOf } from '../../values/urls/notify-url.js';
import { noteAttempts } from '../contact/failing-hosts.js';
import { hostOfWebhook } from '../contact/host-changes.js';
import { addOutcomes } from '../figures/add-outcomes.js';
import { DeliveryEvents, type EndedWebhook } from './delivery-events.js';
import { DeliveryPause, HELD_FROM, heldAt, Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { Claim, ClaimedWebhook, ClaimResult } from './claim.js';

/** How long to wait before trying again to claim a row that another transaction holds. */
const LOCKED_MS = 1_000;

/** Claims webhooks for an attempt, in batches: one claim at a time, not above the attempt limit, not before it is due. */
@Injectable()
export class ClaimStore {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly events: DeliveryEvents,
  ) {}

  /** Returns the results in the order of `ids`. If an id occurs twice, only the first one gets the claim. */
  async claim(ids: string[]): Promise<ClaimResult[]> {
    const { retry } = this.options;
    const { answers, failed } = await inTransaction(this.dataSource, async (manager) => {
      const claims = await lockDue(manager, ids, retry.maxAttempts);
      const answers = new Map<string, ClaimResult>(
        claims.map((claim) => [claim.webhook.id, { kind: 'claimed', claim }]),
      );
      const others = ids.filter((id) => !answers.has(id));
      const failed = others.length > 0 ? await this.classify(manager, others, answers) : [];
      const [first] = claims;
      if (first) await beginAttempts(manager, claims, leaseUntil(retry, first.at.databaseMs));
      return { answers, failed };
    });
    if (failed.length > 0) this.events.lastAttemptsCutOff(failed);
    return ids.map((id) => takeOnce(answers, id));
  }

  /** Undoes a claim when no socket was opened. It does not count as an attempt; the next retry run makes the attempt. */
  async release({ webhook, attempt }: Claim): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const nextAttemptAt = retryRunAt(this.options.retry, await databaseNow(manager));
      const held = { id: webhook.id, status: 'PENDING', attempts: attempt } as const;
      const { affected } = await manager.update(Webhook, held, { attempts: attempt - 1, nextAttemptAt });
      if (affected === 1) await manager.delete(WebhookAttempt, { webhookId: webhook.id, number: attempt });
    });
  }

  /** Sets the result of every id that was not claimed. Returns the webhooks that ended FAILED. */
  private async classify(
    manager: EntityManager,
    ids: string[],
    answers: Map<string, ClaimResult>,
  ): Promise<EndedWebhook[]> {
    const now = await databaseNow(manager);
    const failed = await failExhausted(manager, ids, this.options.retry.maxAttempts, now);
    const pending = await manager.find(Webhook, {
      select: { id: true, nextAttemptAt: true },
      where: { id: In(ids), status: 'PENDING' },
    });
    for (const { id, nextAttemptAt } of pending) {
      // When its pause ends, it becomes due and gets a new job.
      if ((nextAttemptAt ?? 0) >= HELD_FROM) continue;
      answers.set(id, { kind: 'deferred', inMs: Math.max((nextAttemptAt ?? now) - now, LOCKED_MS) });
    }
    return failed;
  }
}

/** Returns a claim only once: BullMQ runs a job twice when it wrongly considers it stalled. */
function takeOnce(answers: Map<string, ClaimResult>, id: string): ClaimResult {
  const answer = answers.get(id) ?? { kind: 'ended' };
  if (answer.kind === 'claimed') answers.set(id, { kind: 'deferred', inMs: LOCKED_MS });
  return answer;
}

const CUT_OFF = 'the last attempt was cut off, because a process of the service stopped';

/** Ends webhooks FAILED whose last attempt was cut off and whose lease has ended. Returns them. */
export async function failExhausted(
  manager: EntityManager,
  ids: string[],
  maxAttempts: number,
  now: number,
): Promise<EndedWebhook[]> {
  const isOver = {
    status: 'PENDING',
    attempts: MoreThanOrEqual(maxAttempts),
    nextAttemptAt: LessThanOrEqual(now),
  } as const;
  const exhausted = await manager.findBy(Webhook, { ...isOver, id: In(ids) });
  if (exhausted.length === 0) return [];
  const { affected } = await manager.update(
    Webhook,
    { ...isOver, id: In(exhausted.map(({ id }) => id)) },
    { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: now },
  );
  // Another process may have ended some of them since they were read.
  const failed =
    affected === exhausted.length
      ? exhausted
      : await manager.findBy(Webhook, { id: In(ids), status: 'FAILED', finishedAt: now });
  const failure = { error: CUT_OFF, diagnosis: 'interrupted' as const, endedFailed: true };
  await noteAttempts(
    manager,
    failed.map((webhook) => ({ ...hostOfWebhook(webhook), endedAt: now, failure })),
  );
  await addOutcomes(
    manager,
    failed.map((webhook) => ({ webhook, endedAt: now, attempt: null, ended: 'FAILED' })),
  );
  return failed;
}

/** At most two secrets of a client are valid, so MIN and MAX are all of them. */
const SEALED = `CONCAT(MIN(CONCAT(s.key_id, ' ', s.sealed)), ' ', MAX(CONCAT(s.key_id, ' ', s.sealed)))`;

/**
 * The claims on the webhooks that are PENDING, due and not paused. They count only after {@link beginAttempts}. Locks in
 * key order and skips locked rows, so that two batches never wait for each other.
 */
async function lockDue(manager: EntityManager, ids: string[], maxAttempts: number): Promise<Claim[]> {
  const monotonicMs = performance.now();
  const { byIndex, isOneOf, now } = dialectOf(manager);
  const { rows } = await runSql(
    manager,
    (parameter) => `
      SELECT id, reference_id AS "referenceId", client_id AS "clientId", notify_url AS "notifyUrl", body, attempts,
        uses_client_url AS "usesClientUrl", created_at AS "createdAt", resend_of AS "resendOf", request_id AS "requestId", ${now} AS now,
        (SELECT ${SEALED} FROM ${tableOf(manager, ClientSecret)} s
          WHERE s.client_id = w.client_id AND (s.expires_at IS NULL OR s.expires_at > ${now})) AS sealed_secrets,
        EXISTS (SELECT 1 FROM ${tableOf(manager, FailingHost)} f WHERE f.client_id = w.client_id) AS has_failing_host,
        EXISTS (SELECT 1 FROM ${tableOf(manager, DeliveryPause)} p WHERE p.resumed_at IS NULL) AS has_pauses
      FROM ${tableOf(manager, Webhook)} w ${byIndex('PRIMARY')}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING'
        AND attempts < ${parameter(maxAttempts)} AND next_attempt_at <= ${now}
      ORDER BY id FOR UPDATE SKIP LOCKED`,
    'usher_lock_due',
  );
  const claims = rows.map(({ attempts, now, has_failing_host, has_pauses: _, sealed_secrets, ...webhook }) => ({
    webhook: { ...webhook, createdAt: Number(webhook.createdAt) } as ClaimedWebhook,
    sealedSecrets: sealed_secrets as string | null,
    attempt: Number(attempts) + 1,
    at: { databaseMs: Number(now), monotonicMs },
    hasFailingHost: Boolean(has_failing_host),
  }));
  return rows[0]?.has_pauses ? holdPaused(manager, claims) : claims;
}

/** Holds those of the locked webhooks that are paused, and returns the others. */
async function holdPaused(manager: EntityManager, claims: Claim[]): Promise<Claim[]> {
  let others = claims;
  for (const pause of await manager.findBy(DeliveryPause, { resumedAt: IsNull() })) {
    const held = others.filter(({ webhook: { clientId, notifyUrl } }) =>
      [`client:${clientId}`, `host:${hostOf(notifyUrl)}`].includes(pause.subject),
    );
    others = others.filter((claim) => !held.includes(claim));
    const ids = held.map(({ webhook }) => webhook.id);
    if (ids.length > 0) await manager.update(Webhook, { id: In(ids) }, { nextAttemptAt: heldAt(pause) });
  }
  return others;
}

/**
 * Counts and records an attempt of each locked webhook. If this process stops, the next one is due at `leaseUntil`. Ends
 * the transaction.
 */
async function beginAttempts(manager: EntityManager, claims: Claim[], leaseUntil: number): Promise<void> {
  const { isOneOf, values } = dialectOf(manager);
  const ids = claims.map(({ webhook }) => webhook.id);
  const count = statementOf(
    manager,
    (parameter) => `
      UPDATE ${tableOf(manager, Webhook)} SET attempts = attempts + 1, next_attempt_at = ${parameter(leaseUntil)}
      WHERE id ${isOneOf(parameter, ids)}`,
    'usher_begin_attempts',
  );
  const { sql, parameters } = values(claims.map(({ webhook, attempt, at }) => [webhook.id, attempt, at.databaseMs]));
  const text = `INSERT INTO ${tableOf(manager, WebhookAttempt)} (webhook_id, number, started_at) VALUES ${sql}`;
  await runTogether(manager, [count, { text, parameters }], true);
}
