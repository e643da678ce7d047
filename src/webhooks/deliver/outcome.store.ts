import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { runSql, runStatement } from '../../database/statements/statement.js';
import { inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { nextAttemptAt } from '../../values/retry-schedule.js';
import { hidePrivateResponse } from '../api/client-view.js';
import { hostOf } from '../../values/urls/notify-url.js';
import { noteAttempts } from '../contact/failing-hosts.js';
import type { HostAttempt } from '../contact/host-changes.js';
import { addOutcomes, endOf, outcomeOf } from '../figures/add-outcomes.js';
import { failureOf } from '../transport/outcome.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from '../webhook.entity.js';
import type { Claim, DeliveryState, FinishedAttempt } from './claim.js';
import { outcomesSince, readEarlier, rowsOf, statesOf } from './repeated-outcomes.js';

/** Rolls a recording back that did not change the row of every attempt. */
class NotAllChanged extends Error {}

/** Records the outcomes of attempts, in batches. */
@Injectable()
export class OutcomeStore {
  /** Attempts whose recording has begun before. The answer to its commit may have been lost. */
  private readonly begun = new WeakSet<Claim>();

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Returns the states in the order of `finished`. Recording an attempt again changes nothing and counts nothing twice. */
  async record(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    const isRepeat = finished.some(({ claim }) => this.begun.has(claim));
    for (const { claim } of finished) this.begun.add(claim);
    const states = isRepeat ? null : await this.recordFirst(finished).catch(nullIfNotAllChanged);
    return states ?? this.recordAgain(finished);
  }

  /** The usual case, with few statements: the number of changed rows tells that all attempts are new and the last ones. */
  private recordFirst(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const changed = await this.recordAll(manager, finished);
      if (changed !== finished.length) throw new NotAllChanged();
      await finishAttempts(manager, sortedById(finished));
      const states = finished.map((one) => this.stateAfter(one));
      await this.noteHosts(manager, finished, (one) => this.stateAfter(one).status);
      await addOutcomes(
        manager,
        finished.map((one, index) => outcomeOf(one, true, endOf(states[index]?.status))),
      );
      return states;
    });
  }

  /** Looks first at what was recorded before: these attempts, or a later attempt or the end of their webhooks. */
  private recordAgain(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const earlier = await readEarlier(manager, finished);
      await this.recordAll(manager, finished);
      const rows = await rowsOf(manager, finished);
      // Without its webhook, which was erased meanwhile, an attempt must not be stored again.
      const stored = finished.filter((one) => rows.has(idOf(one)));
      await finishAttempts(manager, sortedById(stored));
      await this.noteHosts(manager, stored, (one) => rows.get(idOf(one))?.status);
      await addOutcomes(manager, outcomesSince(earlier, stored, rows));
      return statesOf(rows, finished);
    });
  }

  /**
   * Changes the webhooks of attempts. A success of any attempt counts, because the receiver has the notification. Returns how
   * many rows it changed.
   */
  private async recordAll(manager: EntityManager, finished: FinishedAttempt[]): Promise<number> {
    const delivered = sortedById(finished.filter(isDelivered));
    const failed = sortedById(finished.filter((one) => !isDelivered(one)));
    const [first] = delivered;
    const ended = first ? await endDelivered(manager, delivered.map(idOf), first.endedAt) : 0;
    return ended + (await this.recordFailures(manager, failed));
  }

  /**
   * A failure counts only if its attempt is the last one claimed. Equal changes share one statement. Returns how many rows
   * it changed.
   */
  private async recordFailures(manager: EntityManager, failed: FinishedAttempt[]): Promise<number> {
    const groups = new Map<string, { attempts: number; due: number | null; endedAt: number; ids: string[] }>();
    for (const one of failed) {
      const { claim, endedAt } = one;
      const due = this.dueAfter(one);
      const change = `${claim.attempt} ${due}`;
      const group = groups.get(change) ?? { attempts: claim.attempt, due, endedAt, ids: [] };
      group.ids.push(idOf(one));
      groups.set(change, group);
    }
    let changed = 0;
    for (const { attempts, due, endedAt, ids } of groups.values()) {
      const { affected } = await manager.update(
        Webhook,
        { id: In(ids), status: 'PENDING', attempts },
        due === null
          ? { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: endedAt }
          : { nextAttemptAt: due },
      );
      changed += affected ?? 0;
    }
    return changed;
  }

  /** The state after a recording that changed the row of every attempt. */
  private stateAfter(finished: FinishedAttempt): DeliveryState {
    const due = this.dueAfter(finished);
    const ended = isDelivered(finished) ? 'SUCCESS' : 'FAILED';
    return { status: due === null ? ended : 'PENDING', nextAttemptAt: due, endedWebhook: due === null };
  }

  /** Null if it was the last attempt. */
  private dueAfter({ claim, outcome, endedAt }: FinishedAttempt): number | null {
    if (outcome.kind === 'delivered') return null;
    const retryAfterMs = outcome.kind === 'refused' ? outcome.retryAfterMs : 0;
    return nextAttemptAt(this.options.retry, claim.attempt, endedAt, retryAfterMs);
  }

  /** Records what attempts tell about their hosts. A success tells nothing if no host of the client was failing. */
  private async noteHosts(
    manager: EntityManager,
    finished: FinishedAttempt[],
    statusOf: (one: FinishedAttempt) => WebhookStatus | undefined,
  ): Promise<void> {
    const telling = finished.filter((one) => !isDelivered(one) || one.claim.hasFailingHost);
    if (telling.length === 0) return;
    await noteAttempts(
      manager,
      telling.map((one) => this.hostAttempt(one, statusOf(one))),
    );
  }

  private hostAttempt({ claim, outcome, endedAt }: FinishedAttempt, status?: WebhookStatus): HostAttempt {
    const { clientId, notifyUrl } = claim.webhook;
    const failure = failureOf(outcome);
    const shown = { address: outcome.address, error: failure?.error ?? null };
    const { error } = hidePrivateResponse(shown, this.options.environment);
    const told = failure && { ...failure, error: error ?? '', endedFailed: status === 'FAILED' };
    return { clientId, host: hostOf(notifyUrl), endedAt, failure: told };
  }
}

function nullIfNotAllChanged(error: unknown): null {
  if (error instanceof NotAllChanged) return null;
  throw error;
}

const idOf = ({ claim }: FinishedAttempt): string => claim.webhook.id;

const isDelivered = ({ outcome }: FinishedAttempt): boolean => outcome.kind === 'delivered';

const sortedById = (finished: FinishedAttempt[]): FinishedAttempt[] =>
  [...finished].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));

/** Ends those of the webhooks that are PENDING. Returns how many it ended. */
async function endDelivered(manager: EntityManager, ids: string[], finishedAt: number): Promise<number> {
  const { isOneOf } = dialectOf(manager);
  const { affected } = await runSql(
    manager,
    (parameter) => `
      UPDATE ${tableOf(manager, Webhook)}
      SET status = 'SUCCESS', next_attempt_at = NULL, finished_at = ${parameter(finishedAt)}
      WHERE id ${isOneOf(parameter, ids)} AND status = 'PENDING'`,
    'usher_end_delivered',
  );
  return affected;
}

const RESULT_COLUMNS = ['duration_ms', 'phase', 'address', 'response_status', 'error', 'diagnosis', 'response_snippet'];

/** In the order of the columns of {@link finishAttempts}. */
function resultOf({ claim, outcome }: FinishedAttempt): unknown[] {
  const { durationMs, phase, address, snippet } = outcome;
  const status = 'status' in outcome ? outcome.status : null;
  const { error = null, diagnosis = null } = failureOf(outcome) ?? {};
  const key = [claim.webhook.id, claim.attempt, claim.at.databaseMs];
  return [...key, Math.round(durationMs), phase, address, status, error, diagnosis, snippet || null];
}

/** The rows of the attempts exist since the claim; one statement completes them all. */
async function finishAttempts(manager: EntityManager, finished: FinishedAttempt[]): Promise<void> {
  if (finished.length === 0) return;
  const { upsert, values } = dialectOf(manager);
  const { sql, parameters } = values(finished.map(resultOf));
  await runStatement(manager, {
    text: `
      INSERT INTO ${tableOf(manager, WebhookAttempt)} (webhook_id, number, started_at, ${RESULT_COLUMNS.join(', ')})
      VALUES ${sql} ${upsert(['webhook_id', 'number'], RESULT_COLUMNS)}`,
    parameters,
  });
}
