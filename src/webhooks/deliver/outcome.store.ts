import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { dialectOf, type OnDataSource, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { insertOf, runAlone, runSql, runTogether, type Statement } from '../../database/statements/statement.js';
import { nullForOtherCount } from '../../database/errors.js';
import { inTransaction, retryDeadlocks } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { nextAttemptAt } from '../../values/retry-schedule.js';
import { hidePrivateResponse } from '../api/client-view.js';
import { noteAttempts } from '../contact/failing-hosts.js';
import { type HostAttempt, hostOfWebhook } from '../contact/host-changes.js';
import { additionOf, leaveLockedShard, type RecordedOutcome } from '../figures/add-outcomes.js';
import { failureOf } from '../transport/outcome.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { Claim, DeliveryState, FinishedAttempt } from './claim.js';

type StatesById = Map<string, Pick<DeliveryState, 'status'>>;

/** Records the outcomes of attempts, in batches. */
@Injectable()
export class OutcomeStore {
  /** Attempts whose recording has begun. The answer to its commit may have been lost. */
  private readonly begun = new WeakSet<Claim>();

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Returns the states in the order of `finished`. Recording an attempt again changes nothing and counts nothing twice. */
  record(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    const isRepeat = finished.some(({ claim }) => this.begun.has(claim));
    for (const { claim } of finished) this.begun.add(claim);
    const first = isRepeat ? Promise.resolve(null) : this.recordFirst(finished).catch(nullForOtherCount);
    return first.then((states) => states ?? this.recordAgain(finished)).catch(leaveLockedShard);
  }

  /** The usual case: all attempts are new and the last ones. Otherwise a statement changes fewer rows than it must, and fails. */
  private async recordFirst(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    const { dataSource } = this;
    const states = new Map(finished.map((one) => [idOf(one), this.stateAfter(one)]));
    const changes = this.changesOf(dataSource, finished, 'all');
    const results = resultsOf(dataSource, finished, states, { pending: new Set(states.keys()), stored: new Set() });
    const hosts = this.hostAttempts(finished, states);
    if (hosts.length === 0) {
      await retryDeadlocks(() => runAlone(dataSource, [...changes, ...results]));
    } else {
      // What is noted of a host depends on rows that are read first.
      await inTransaction(dataSource, async (manager) => {
        await runTogether(manager, changes);
        await noteAttempts(manager, hosts);
        await runTogether(manager, results, true);
      });
    }
    return [...states.values()];
  }

  /** Looks first at what was recorded before: these attempts, or a later attempt or the end of their webhooks. */
  private recordAgain(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const earlier = await readEarlier(manager, finished);
      await runTogether(manager, this.changesOf(manager, finished, 'some'));
      const found = await manager.find(Webhook, {
        select: { id: true, status: true, nextAttemptAt: true, finishedAt: true },
        where: { id: In(finished.map(idOf)) },
      });
      const rows = new Map(found.map((row) => [row.id, row]));
      // If its webhook was erased meanwhile, an attempt must not be stored again.
      const stored = finished.filter((one) => rows.has(idOf(one)));
      if (stored.length > 0) {
        await noteAttempts(manager, this.hostAttempts(stored, rows));
        await runTogether(manager, resultsOf(manager, stored, rows, earlier), true);
      }
      return statesOf(rows, finished);
    });
  }

  /**
   * Changes the webhooks of `all` of the attempts, or fails; or of `some` of them. A success of any attempt counts, because the
   * receiver has the notification. A failure counts only if its attempt is the last one claimed. Equal changes share a statement,
   * and so do ends within one second: outcomes that waited for the database may have ended long before others.
   */
  private changesOf(on: OnDataSource, finished: FinishedAttempt[], which: 'all' | 'some'): Statement[] {
    const groups = new Map<string, FinishedAttempt[]>();
    for (const one of sortedById(finished)) {
      const when = this.dueAfter(one) ?? secondOf(one.endedAt);
      const change = isDelivered(one) ? `delivered ${when}` : `${one.claim.attempt} ${when}`;
      groups.set(change, [...(groups.get(change) ?? []), one]);
    }
    return [...groups.values()].map((equal) => {
      const [first] = equal as [FinishedAttempt];
      const ids = equal.map(idOf);
      // A resend may follow 30 s later, so no end may be too early.
      const endedAt = Math.max(...equal.map((one) => one.endedAt));
      const statement = isDelivered(first)
        ? endDelivered(on, ids, endedAt)
        : recordFailures(on, ids, first.claim.attempt, this.dueAfter(first), endedAt);
      return which === 'all' ? { rows: { changed: equal.length }, ...statement } : statement;
    });
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

  /** A success tells nothing about its host if no host of the client was failing. */
  private hostAttempts(finished: FinishedAttempt[], states: StatesById): HostAttempt[] {
    const telling = finished.filter((one) => !isDelivered(one) || one.claim.hasFailingHost);
    return telling.map(({ claim: { webhook }, outcome, endedAt }) => {
      const failure = failureOf(outcome);
      const shown = { address: outcome.address, error: failure?.error ?? null };
      const error = hidePrivateResponse(shown, this.options.environment).error ?? '';
      const endedFailed = states.get(webhook.id)?.status === 'FAILED';
      return { ...hostOfWebhook(webhook), endedAt, failure: failure && { ...failure, error, endedFailed } };
    });
  }
}

const idOf = ({ claim }: FinishedAttempt): string => claim.webhook.id;

const secondOf = (ms: number): number => Math.floor(ms / 1_000);

const isDelivered = ({ outcome }: FinishedAttempt): boolean => outcome.kind === 'delivered';

const sortedById = (finished: FinishedAttempt[]): FinishedAttempt[] =>
  finished.toSorted((left, right) => (idOf(left) < idOf(right) ? -1 : 1));

/** Ends those of the webhooks that are PENDING. */
function endDelivered(on: OnDataSource, ids: string[], finishedAt: number): Statement {
  return {
    name: 'usher_end_delivered',
    write: (parameter) => `
      UPDATE ${tableOf(on, Webhook)}
      SET status = 'SUCCESS', next_attempt_at = NULL, finished_at = ${parameter(finishedAt)}
      WHERE id ${dialectOf(on).isOneOf(parameter, ids)} AND status = 'PENDING'`,
  };
}

/** Sets when the next attempt is due, or ends webhooks after the last one (`due` is null). A failover may have forgotten the claim. */
function recordFailures(on: OnDataSource, ids: string[], attempt: number, due: number | null, at: number): Statement {
  return {
    write: (parameter) => `
      UPDATE ${tableOf(on, Webhook)}
      SET attempts = ${parameter(attempt)}, next_attempt_at = ${parameter(due)} ${due === null ? `, status = 'FAILED', live_key = NULL, finished_at = ${parameter(at)}` : ''}
      WHERE id ${dialectOf(on).isOneOf(parameter, ids)} AND status = 'PENDING' AND attempts <= ${parameter(attempt)}`,
  };
}

/** What is recorded of attempts beside the changes of their webhooks. */
function resultsOf(
  on: OnDataSource,
  finished: FinishedAttempt[],
  states: StatesById,
  earlier: EarlierRecords,
): Statement[] {
  // The rows of the attempts exist since the claim; one statement completes them all.
  const onConflict = dialectOf(on).upsert(['webhook_id', 'number'], RESULTS);
  const attempts = insertOf(on, WebhookAttempt, sortedById(finished).map(attemptRow), onConflict);
  return [attempts, ...additionOf(on, outcomesSince(earlier, finished, states))];
}

const RESULTS = 'duration_ms phase address response_status error diagnosis response_snippet signed_with'.split(' ');

function attemptRow({ claim, outcome, signedWith }: FinishedAttempt): WebhookAttempt {
  const { durationMs, phase, address, snippet } = outcome;
  return {
    webhookId: claim.webhook.id,
    number: claim.attempt,
    startedAt: claim.at.databaseMs,
    durationMs: Math.round(durationMs),
    phase,
    address,
    responseStatus: 'status' in outcome ? outcome.status : null,
    ...(failureOf(outcome) ?? { error: null, diagnosis: null }),
    responseSnippet: snippet || null,
    signedWith: signedWith ?? null,
  };
}

type EarlierRecords = Awaited<ReturnType<typeof readEarlier>>;

/**
 * What the tables say before attempts are recorded again. Locks the webhooks that have not ended, in key order, so that only
 * this transaction ends them.
 */
async function readEarlier(manager: EntityManager, finished: FinishedAttempt[]) {
  const { byIndex, isOneOf } = dialectOf(manager);
  const ids = finished.map(idOf);
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
    /** The attempts whose outcome is stored, as their webhook's id and their number. */
    stored: new Set(stored.rows.map(({ webhook_id, number }) => `${webhook_id} ${number}`)),
  };
}

/** What a recording adds to the figures, without what was added before and without ends that other attempts caused. */
function outcomesSince(
  { pending, stored }: EarlierRecords,
  finished: FinishedAttempt[],
  after: StatesById,
): RecordedOutcome[] {
  const notEnded = new Set(pending);
  return finished.map((one) => {
    const { claim, outcome, endedAt } = one;
    const ended = isDelivered(one) ? 'SUCCESS' : 'FAILED';
    const hasEnded = after.get(idOf(one))?.status === ended && notEnded.delete(idOf(one));
    const isNew = !stored.has(`${idOf(one)} ${claim.attempt}`);
    const attempt = isNew ? { durationMs: outcome.durationMs, hasFailed: !isDelivered(one) } : null;
    return { webhook: claim.webhook, endedAt, attempt, ended: hasEnded ? ended : null };
  });
}

/**
 * An attempt ended its webhook if their seconds are equal: its first recording may have been committed without an answer. An
 * overlapping attempt in another process may have the same second. Then both report the end, and nothing else differs.
 */
function statesOf(rows: Map<string, Webhook>, finished: FinishedAttempt[]): DeliveryState[] {
  const notReported = new Set(rows.keys());
  return finished.map((one) => {
    const row = rows.get(idOf(one));
    if (!row) return { status: 'FAILED', nextAttemptAt: null, endedWebhook: false };
    // Two attempts of one webhook may be recorded together; only one of them is reported as the one that ended it.
    const endedWebhook = secondOf(row.finishedAt ?? 0) === secondOf(one.endedAt) && notReported.delete(row.id);
    return { status: row.status, nextAttemptAt: row.nextAttemptAt, endedWebhook };
  });
}
