import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { dialectOf } from '../../database/dialect.js';
import { inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { nextAttemptAt } from '../../values/retry-schedule.js';
import { hidePrivateResponse } from '../api/client-view.js';
import { hostOf, noteAttempts } from '../contact/failing-hosts.js';
import type { HostAttempt } from '../contact/host-changes.js';
import { addOutcomes, type RecordedOutcome } from '../figures/add-outcomes.js';
import { diagnosisCodeOf, errorOf } from '../transport/outcome.js';
import type { FinalStatus } from '../../events/events.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import {
  type Claim,
  type DeliveryState,
  endDelivered,
  finishAttempts,
  type FinishedAttempt,
} from './delivery-statements.js';

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
    if (isRepeat) return this.recordAgain(finished);
    try {
      return await this.recordFirst(finished);
    } catch (error) {
      if (error instanceof NotAllChanged) return this.recordAgain(finished);
      throw error;
    }
  }

  /** The usual case, with few statements: the number of changed rows tells that all attempts are new and the last ones. */
  private recordFirst(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const changed = (await this.recordSuccesses(manager, finished)) + (await this.recordFailures(manager, finished));
      if (changed !== finished.length) throw new NotAllChanged();
      await finishAttempts(manager, sortedById(finished));
      const states = finished.map((one) => this.stateAfter(one));
      await noteAttempts(manager, this.hostAttempts(finished, states, new Set(finished)));
      await addOutcomes(manager, outcomesOf(finished, states));
      return states;
    });
  }

  /** Looks first at what was recorded before: these attempts, or a later attempt or the end of their webhooks. */
  private recordAgain(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const earlier = await readEarlier(manager, finished);
      await this.recordSuccesses(manager, finished);
      await this.recordFailures(manager, finished);
      const rows = await rowsOf(manager, finished);
      // Without its webhook, which was erased meanwhile, an attempt must not be stored again.
      const stored = finished.filter((one) => rows.has(idOf(one)));
      await finishAttempts(manager, sortedById(stored));
      const states = statesOf(rows, finished);
      await noteAttempts(manager, this.hostAttempts(finished, states, new Set(stored)));
      await addOutcomes(manager, outcomesSince(earlier, stored, rows));
      return states;
    });
  }

  /** A success of any attempt counts, because the receiver has the notification. Returns how many rows it changed. */
  private async recordSuccesses(manager: EntityManager, finished: FinishedAttempt[]): Promise<number> {
    const delivered = sortedById(finished.filter(({ outcome }) => outcome.kind === 'delivered'));
    const [first] = delivered;
    return first ? endDelivered(manager, delivered.map(idOf), first.endedAt) : 0;
  }

  /**
   * A failure counts only if its attempt is the last one claimed. Equal changes share one statement. Returns how many rows
   * it changed.
   */
  private async recordFailures(manager: EntityManager, finished: FinishedAttempt[]): Promise<number> {
    const failed = sortedById(finished.filter(({ outcome }) => outcome.kind !== 'delivered'));
    const groups = new Map<string, FinishedAttempt[]>();
    for (const one of failed) {
      const change = `${one.claim.attempt} ${this.dueAfter(one)}`;
      groups.set(change, [...(groups.get(change) ?? []), one]);
    }
    let changed = 0;
    for (const group of groups.values()) changed += await this.recordGroup(manager, group);
    return changed;
  }

  private async recordGroup(manager: EntityManager, group: FinishedAttempt[]): Promise<number> {
    const [first] = group;
    if (!first) return 0;
    const { claim, endedAt } = first;
    const due = this.dueAfter(first);
    const { affected } = await manager.update(
      Webhook,
      { id: In(group.map(idOf)), status: 'PENDING', attempts: claim.attempt },
      due === null
        ? { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: endedAt }
        : { nextAttemptAt: due },
    );
    return affected ?? 0;
  }

  /** The state after a recording that changed the row of every attempt. */
  private stateAfter(finished: FinishedAttempt): DeliveryState {
    if (finished.outcome.kind === 'delivered') return { status: 'SUCCESS', nextAttemptAt: null, endedWebhook: true };
    const due = this.dueAfter(finished);
    return { status: due === null ? 'FAILED' : 'PENDING', nextAttemptAt: due, endedWebhook: due === null };
  }

  private dueAfter({ claim, outcome, endedAt }: FinishedAttempt): number | null {
    const retryAfterMs = outcome.kind === 'refused' ? outcome.retryAfterMs : 0;
    return nextAttemptAt(this.options.retry, claim.attempt, endedAt, retryAfterMs);
  }

  /** What the attempts tell about their hosts. A success tells nothing if no host of the client was failing. */
  private hostAttempts(
    finished: FinishedAttempt[],
    states: DeliveryState[],
    stored: Set<FinishedAttempt>,
  ): HostAttempt[] {
    return finished.flatMap((one, index) => {
      const { claim, outcome, endedAt } = one;
      const { clientId, notifyUrl } = claim.webhook;
      if (!stored.has(one) || (outcome.kind === 'delivered' && !claim.hasFailingHost)) return [];
      const shown = { address: outcome.address, error: errorOf(outcome), responseSnippet: null };
      const { error } = hidePrivateResponse(shown, this.options.environment);
      const diagnosis = diagnosisCodeOf(outcome);
      const failure = error === null ? null : { error, diagnosis, endedFailed: states[index]?.status === 'FAILED' };
      return { clientId, host: hostOf(notifyUrl), endedAt, failure };
    });
  }
}

async function rowsOf(manager: EntityManager, finished: FinishedAttempt[]): Promise<Map<string, Webhook>> {
  const rows = await manager.find(Webhook, {
    select: { id: true, status: true, nextAttemptAt: true, finishedAt: true },
    where: { id: In(finished.map(idOf)) },
  });
  return new Map(rows.map((row) => [row.id, row]));
}

function statesOf(rows: Map<string, Webhook>, finished: FinishedAttempt[]): DeliveryState[] {
  const endTimes = new Set<number | null>(finished.map(({ endedAt }) => endedAt));
  const reported = new Set<string>();
  return finished.map((one) => {
    const row = rows.get(idOf(one));
    if (!row) return { status: 'FAILED', nextAttemptAt: null, endedWebhook: false };
    // Two attempts of one webhook may be recorded together; only one of them is reported as the one that ended it.
    const endedWebhook = endTimes.has(row.finishedAt) && !reported.has(row.id);
    reported.add(row.id);
    return { status: row.status, nextAttemptAt: row.nextAttemptAt, endedWebhook };
  });
}

const idOf = ({ claim }: FinishedAttempt): string => claim.webhook.id;

const sortedById = (finished: FinishedAttempt[]): FinishedAttempt[] =>
  [...finished].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));

/** What a recording that is made for the first time adds to the figures. */
const outcomesOf = (finished: FinishedAttempt[], states: DeliveryState[]): RecordedOutcome[] =>
  finished.map((one, index) => outcomeOf(one, true, endOf(states[index]?.status)));

/** What the tables say before attempts are recorded again. */
interface EarlierRecords {
  /** The ids of those webhooks that have not ended. */
  pending: Set<string>;
  /** The attempts whose outcome is stored, by {@link attemptKey}. */
  stored: Set<string>;
}

/** Locks the webhooks that have not ended, in key order, so that only this transaction ends them. */
async function readEarlier(manager: EntityManager, finished: FinishedAttempt[]): Promise<EarlierRecords> {
  const { dataSource } = manager;
  const ids = [...new Set(finished.map(({ claim }) => claim.webhook.id))].sort();
  const pending = await manager.sql<{ id: string }[]>`
    SELECT id FROM ${() => tableOf(dataSource, Webhook)} ${() => dialectOf(dataSource).byIndex('PRIMARY')}
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
function outcomesSince(
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
