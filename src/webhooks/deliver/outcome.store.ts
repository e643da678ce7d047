import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { nextAttemptAt } from '../../values/retry-schedule.js';
import { errorOf } from '../transport/outcome.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { Claim, FinishedAttempt, DeliveryState } from './attempt.js';

/** Records the outcomes of attempts, in batches. */
@Injectable()
export class OutcomeStore {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Returns the states in the order of `finished`. */
  record(finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    return inTransaction(this.dataSource, async (manager) => {
      await this.recordSuccesses(manager, finished);
      await this.recordFailures(manager, finished);
      await finishAttempts(manager, finished);
      return this.states(manager, finished);
    });
  }

  /** A success of any attempt counts, because the receiver has the notification. */
  private async recordSuccesses(manager: EntityManager, finished: FinishedAttempt[]): Promise<void> {
    const delivered = sortedById(finished.filter(({ outcome }) => outcome.kind === 'delivered'));
    const [first] = delivered;
    if (!first) return;
    await manager.update(
      Webhook,
      { id: In(delivered.map(idOf)), status: 'PENDING' },
      { status: 'SUCCESS', nextAttemptAt: null, finishedAt: first.endedAt },
    );
  }

  /** A failure counts only if its attempt is the last one claimed. Equal changes share one statement. */
  private async recordFailures(manager: EntityManager, finished: FinishedAttempt[]): Promise<void> {
    const failed = sortedById(finished.filter(({ outcome }) => outcome.kind !== 'delivered'));
    const groups = new Map<string, FinishedAttempt[]>();
    for (const one of failed) {
      const change = `${one.claim.attempt} ${this.dueAfter(one.claim, one.endedAt)}`;
      groups.set(change, [...(groups.get(change) ?? []), one]);
    }
    for (const group of groups.values()) await this.recordGroup(manager, group);
  }

  private async recordGroup(manager: EntityManager, group: FinishedAttempt[]): Promise<void> {
    const [first] = group;
    if (!first) return;
    const { claim, endedAt } = first;
    const due = this.dueAfter(claim, endedAt);
    await manager.update(
      Webhook,
      { id: In(group.map(idOf)), status: 'PENDING', attempts: claim.attempt },
      due === null
        ? { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: endedAt }
        : { nextAttemptAt: due },
    );
  }

  private async states(manager: EntityManager, finished: FinishedAttempt[]): Promise<DeliveryState[]> {
    const rows = await manager.find(Webhook, {
      select: { id: true, status: true, nextAttemptAt: true, finishedAt: true },
      where: { id: In(finished.map(idOf)) },
    });
    const byId = new Map(rows.map((row) => [row.id, row]));
    const endTimes = new Set<number | null>(finished.map(({ endedAt }) => endedAt));
    const reported = new Set<string>();
    return finished.map((one) => {
      const row = byId.get(idOf(one));
      if (!row) return { status: 'FAILED', nextAttemptAt: null, endedWebhook: false };
      // Two attempts of one webhook may be recorded together; only one of them is reported as the one that ended it.
      const endedWebhook = endTimes.has(row.finishedAt) && !reported.has(row.id);
      reported.add(row.id);
      return { status: row.status, nextAttemptAt: row.nextAttemptAt, endedWebhook };
    });
  }

  private dueAfter(claim: Claim, endedAt: number): number | null {
    return nextAttemptAt(this.options.retry, claim.attempt, endedAt);
  }
}

/** The rows of the attempts exist since the claim; one statement completes them all. */
async function finishAttempts(manager: EntityManager, finished: FinishedAttempt[]): Promise<void> {
  const rows = sortedById(finished).map(({ claim, outcome }) => ({
    webhookId: claim.webhook.id,
    number: claim.attempt,
    startedAt: claim.at.databaseMs,
    durationMs: Math.round(outcome.durationMs),
    phase: outcome.phase,
    address: outcome.address,
    responseStatus: 'status' in outcome ? outcome.status : null,
    error: errorOf(outcome),
    responseSnippet: outcome.snippet || null,
  }));
  await manager
    .createQueryBuilder()
    .insert()
    .into(WebhookAttempt)
    .values(rows)
    .orUpdate(
      ['duration_ms', 'phase', 'address', 'response_status', 'error', 'response_snippet'],
      ['webhook_id', 'number'],
    )
    .updateEntity(false)
    .execute();
}

const idOf = ({ claim }: FinishedAttempt): string => claim.webhook.id;

const sortedById = (finished: FinishedAttempt[]): FinishedAttempt[] =>
  [...finished].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
