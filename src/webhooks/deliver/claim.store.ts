import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, LessThanOrEqual, MoreThanOrEqual } from 'typeorm';
import { dialectOf, type OnDataSource, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type Row, runAlone, runStatement, runTogether, type Statement } from '../../database/statements/statement.js';
import { nullForOtherCount } from '../../database/errors.js';
import { databaseNow, inTransaction, retryDeadlocks } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { leaseMs, type RetryPolicy, retryRunAt } from '../../values/retry-schedule.js';
import { Client, ClientSecret } from '../../clients/client.entity.js';
import { FailingHost } from '../contact/failing-host.entity.js';
import { hostOf } from '../../values/urls/notify-url.js';
import { noteAttempts } from '../contact/failing-hosts.js';
import { hostOfWebhook } from '../contact/host-changes.js';
import { addOutcomes } from '../figures/add-outcomes.js';
import { DeliveryEvents, type EndedWebhook } from './delivery-events.js';
import { DeliveryPause, HELD_FROM, heldAt, Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { Claim, ClaimedWebhook, ClaimResult, Moment } from './claim.js';

/** How long to wait before trying again to claim a row that another transaction holds. */
const LOCKED_MS = 1_000;

/** Claims webhooks for an attempt, in batches: one claim at a time, not above the attempt limit, not before it is due. */
@Injectable()
export class ClaimStore {
  /** Whether deliveries were paused when {@link claimSome} last looked. */
  private havePauses = false;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly events: DeliveryEvents,
  ) {}

  /** Returns the results in the order of `ids`. If an id occurs twice, only the first one gets the claim. */
  async claim(ids: string[]): Promise<ClaimResult[]> {
    const answers = (await this.claimAll([...new Set(ids)])) ?? (await this.claimSome(ids));
    return ids.map((id) => takeOnce(answers, id));
  }

  /** The usual case, in one round trip. Null if not all of them can be claimed, or if deliveries are paused. */
  private async claimAll(ids: string[]): Promise<Answers | null> {
    if (this.havePauses) return null;
    const { dataSource } = this;
    const { retry } = this.options;
    const lock = lockDue(dataSource, ids, retry.maxAttempts, 'without pauses');
    const attempts = beginAttempts(dataSource, ids, retry, dialectOf(dataSource).rowsOfFirst);
    return retryDeadlocks(async () => {
      const before = thisMoment();
      const [locked] = await runAlone(dataSource, [{ rows: { found: ids.length }, ...lock }, ...attempts]);
      return answersOf(claimsOf(locked?.rows ?? [], before));
    }).catch(nullForOtherCount);
  }

  /** Claims those that can be claimed, and finds out what becomes of each other one. */
  private async claimSome(ids: string[]): Promise<Answers> {
    const { retry } = this.options;
    const { answers, failed } = await inTransaction(this.dataSource, async (manager) => {
      const before = thisMoment();
      const { rows } = await runStatement(manager, lockDue(manager, ids, retry.maxAttempts, 'with pauses'));
      const due = claimsOf(rows, before);
      this.havePauses = Boolean(rows[0]?.has_pauses);
      const claims = this.havePauses ? await holdPaused(manager, due) : due;
      const claimed = claims.map(({ webhook }) => webhook.id);
      const answers = answersOf(claims);
      const others = ids.filter((id) => !answers.has(id));
      const failed = others.length > 0 ? await this.classify(manager, others, answers) : [];
      if (claimed.length > 0) await runTogether(manager, beginAttempts(manager, claimed, retry), true);
      return { answers, failed };
    });
    if (failed.length > 0) this.events.lastAttemptsCutOff(failed);
    return answers;
  }

  /**
   * Undoes a claim when no socket was opened. It does not count as an attempt; the next retry run makes the attempt. It rejects
   * only before its commit: later another worker may have the same number, and a repeat would undo that claim.
   */
  async release({ webhook, attempt }: Claim): Promise<void> {
    let isCommitting = false;
    const released = inTransaction(this.dataSource, async (manager) => {
      isCommitting = false;
      if (!(await manager.existsBy(Client, { id: webhook.clientId }))) return deleteErased(manager, webhook.id);
      const nextAttemptAt = retryRunAt(this.options.retry, await databaseNow(manager));
      const held = { id: webhook.id, status: 'PENDING', attempts: attempt } as const;
      const { affected } = await manager.update(Webhook, held, { attempts: attempt - 1, nextAttemptAt });
      if (affected === 1) await manager.delete(WebhookAttempt, { webhookId: webhook.id, number: attempt });
      isCommitting = true;
    });
    await released.catch((error: unknown) => {
      if (!isCommitting) throw error;
    });
  }

  /** Sets the result of every id that was not claimed. Returns the webhooks that ended FAILED. */
  private async classify(manager: EntityManager, ids: string[], answers: Answers): Promise<EndedWebhook[]> {
    const now = await databaseNow(manager);
    const failed = await failExhausted(manager, ids, this.options.retry.maxAttempts, now);
    const select = { id: true, status: true, nextAttemptAt: true } as const;
    for (const { id, status, nextAttemptAt } of await manager.find(Webhook, { select, where: { id: In(ids) } })) {
      const inMs = Math.max((nextAttemptAt ?? now) - now, LOCKED_MS);
      // When its pause ends, a held one becomes due and gets a new job.
      const isOver = status !== 'PENDING' || (nextAttemptAt ?? 0) >= HELD_FROM;
      answers.set(id, isOver ? { kind: 'ended' } : { kind: 'deferred', inMs });
    }
    return failed;
  }
}

/** Deletes a webhook whose transaction was open while its client was erased: without a secret it would stay PENDING for ever. */
async function deleteErased(manager: EntityManager, webhookId: string): Promise<void> {
  await manager.delete(Webhook, { id: webhookId });
  await manager.delete(WebhookAttempt, { webhookId });
}

type Answers = Map<string, ClaimResult>;

const answersOf = (claims: Claim[]): Answers =>
  new Map(claims.map((claim) => [claim.webhook.id, { kind: 'claimed', claim }]));

/** Returns a claim only once: BullMQ runs a job twice when it wrongly considers it stalled. */
function takeOnce(answers: Answers, id: string): ClaimResult {
  const answer = answers.get(id) ?? { kind: 'missing' };
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
  // Locked, because only one process may count an end. A row that is locked already is left for the next look at it.
  const failed = await manager.find(Webhook, {
    where: { ...isOver, id: In(exhausted.map(({ id }) => id)) },
    order: { id: 'ASC' },
    lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
  });
  await manager.update(
    Webhook,
    { id: In(failed.map(({ id }) => id)) },
    { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: now },
  );
  const failure = { error: CUT_OFF, diagnosis: 'interrupted' as const, endedFailed: true };
  const attempts = failed.map((webhook) => ({ ...hostOfWebhook(webhook), endedAt: now, failure }));
  await noteAttempts(manager, attempts);
  await addOutcomes(
    manager,
    failed.map((webhook) => ({ webhook, endedAt: now, attempt: null, ended: 'FAILED' })),
  );
  return failed;
}

/** At most two secrets of a client are valid, so MIN and MAX are all of them. */
const SEALED = `CONCAT(MIN(CONCAT(s.key_id, ' ', s.sealed)), ' ', MAX(CONCAT(s.key_id, ' ', s.sealed)))`;

/**
 * Locks the webhooks that are PENDING and due, and reads what a claim needs. The claims count only after {@link beginAttempts}.
 * Locks in key order and skips locked rows, so that two batches never wait for each other. `without pauses`: while any deliveries
 * are paused, it finds none.
 */
function lockDue(
  on: OnDataSource,
  ids: string[],
  maxAttempts: number,
  pauses: 'with pauses' | 'without pauses',
): Statement {
  const { byIndex, isOneOf, now } = dialectOf(on);
  const paused = `EXISTS (SELECT 1 FROM ${tableOf(on, DeliveryPause)} p WHERE p.resumed_at IS NULL)`;
  return {
    name: 'usher_lock_due',
    write: (parameter) => `
      SELECT id, reference_id AS "referenceId", client_id AS "clientId", notify_url AS "notifyUrl", body, attempts,
        uses_client_url AS "usesClientUrl", created_at AS "createdAt", resend_of AS "resendOf", request_id AS "requestId", ${now} AS now,
        (SELECT ${SEALED} FROM ${tableOf(on, ClientSecret)} s
          WHERE s.client_id = w.client_id AND (s.expires_at IS NULL OR s.expires_at > ${now})) AS sealed_secrets,
        EXISTS (SELECT 1 FROM ${tableOf(on, FailingHost)} f WHERE f.client_id = w.client_id) AS has_failing_host
        ${pauses === 'with pauses' ? `, ${paused} AS has_pauses` : ''}
      FROM ${tableOf(on, Webhook)} w ${byIndex('PRIMARY')}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING'
        AND attempts < ${parameter(maxAttempts)} AND next_attempt_at <= ${now}
        ${pauses === 'with pauses' ? '' : `AND NOT ${paused}`}
      ORDER BY id FOR UPDATE SKIP LOCKED`,
  };
}

/** This moment on the clocks of this process. */
export const thisMoment = (): Omit<Moment, 'databaseMs'> => ({ monotonicMs: performance.now(), wallMs: Date.now() });

const claimsOf = (rows: Row[], before: Omit<Moment, 'databaseMs'>): Claim[] =>
  rows.map(({ attempts, now, has_failing_host, sealed_secrets, ...webhook }) => ({
    webhook: { ...webhook, createdAt: Number(webhook.createdAt) } as ClaimedWebhook,
    sealedSecrets: sealed_secrets as string | null,
    attempt: Number(attempts) + 1,
    at: { databaseMs: Number(now), ...before },
    hasFailingHost: Boolean(has_failing_host),
  }));

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
 * Records an attempt of each locked webhook, and then counts it, so that it starts before its lease. If this process stops, the
 * next attempt is due at the end of the lease: the first retry run at least {@link leaseMs} later. `locked`: the name of the
 * locked rows, if the same statement has locked them; null: they are read again.
 */
function beginAttempts(on: OnDataSource, ids: string[], retry: RetryPolicy, locked: string | null = null): Statement[] {
  const { isOneOf, now } = dialectOf(on);
  const [webhooks, attempts] = [tableOf(on, Webhook), tableOf(on, WebhookAttempt)];
  const record: Statement = {
    name: 'usher_begin_attempts',
    write: (parameter) => `
      INSERT INTO ${attempts} (webhook_id, number, started_at)
      SELECT id, attempts + 1, ${now} FROM ${locked ?? `${webhooks} WHERE id ${isOneOf(parameter, ids)}`}`,
  };
  const count: Statement = {
    name: 'usher_count_attempts',
    write: (parameter) => {
      const last = () => `${now} + ${parameter(leaseMs(retry) + retry.retryEveryMs - 1)}`;
      return `
        UPDATE ${webhooks}
        SET attempts = attempts + 1, next_attempt_at = ${last()} - MOD(${last()}, ${parameter(retry.retryEveryMs)})
        WHERE id ${isOneOf(parameter, ids)}`;
    },
  };
  return [record, count];
}
