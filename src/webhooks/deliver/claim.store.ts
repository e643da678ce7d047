import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { type DataSource, type EntityManager, In, LessThanOrEqual, MoreThanOrEqual } from 'typeorm';
import { databaseNow, inTransaction, nowExpression } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { leaseUntil, retryRunAt } from '../../values/retry-schedule.js';
import type { EndedWebhook } from '../webhook-ended.event.js';
import { Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { Claim, ClaimResult } from './attempt.js';
import { DeliveryEvents } from './delivery-events.js';

/** A row that another transaction holds is looked at again after this. */
const LOCKED_MS = 1_000;

/** Claims webhooks for an attempt, sets of them at once: never twice at a time, never a sixth time, never too early. */
@Injectable()
export class ClaimStore {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly events: DeliveryEvents,
  ) {}

  /** Answers in the order of `ids`. A job that BullMQ runs twice may ask twice at once: the first alone has the claim. */
  async claim(ids: string[]): Promise<ClaimResult[]> {
    const answers = new Map<string, ClaimResult>();
    const failed = await inTransaction(this.dataSource, async (manager) => {
      answers.clear();
      for (const claim of await this.claimDue(manager, ids)) answers.set(claim.webhook.id, { kind: 'claimed', claim });
      const others = ids.filter((id) => !answers.has(id));
      return others.length > 0 ? this.classify(manager, others, answers) : [];
    });
    this.events.lastAttemptsCutOff(failed);
    return ids.map((id) => takeOnce(answers, id));
  }

  /** Undoes a claim whose socket was never opened: not an attempt, due again at the next retry run. */
  async release({ webhook, attempt }: Claim): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const nextAttemptAt = retryRunAt(this.options.retry, await databaseNow(manager));
      const held = { id: webhook.id, status: 'PENDING', attempts: attempt } as const;
      const { affected } = await manager.update(Webhook, held, { attempts: attempt - 1, nextAttemptAt });
      if (affected === 1) await manager.delete(WebhookAttempt, { webhookId: webhook.id, number: attempt });
    });
  }

  private async claimDue(manager: EntityManager, ids: string[]): Promise<Claim[]> {
    const monotonicMs = performance.now();
    const due = await this.lockDue(manager, ids);
    const [first] = due;
    if (!first) return [];
    const databaseMs = Number(first.now);
    const claimed = due.map(({ id }) => id);
    await manager.update(
      Webhook,
      { id: In(claimed) },
      { attempts: () => 'attempts + 1', nextAttemptAt: leaseUntil(this.options.retry, databaseMs) },
    );
    const webhooks = await manager.find(Webhook, { where: { id: In(claimed) }, order: { id: 'ASC' } });
    await manager.insert(
      WebhookAttempt,
      webhooks.map(({ id, attempts }) => ({ webhookId: id, number: attempts, startedAt: databaseMs })),
    );
    return webhooks.map((webhook) => ({ webhook, attempt: webhook.attempts, at: { databaseMs, monotonicMs } }));
  }

  /** In key order, passing over rows that others hold: two batches never wait for each other. */
  private lockDue(manager: EntityManager, ids: string[]): Promise<{ id: string; now: string }[]> {
    const now = nowExpression(this.dataSource);
    const { maxAttempts } = this.options.retry;
    // MySQL would rather scan a small table than use its key, and lock every row on the way.
    const byKey = this.dataSource.options.type === 'postgres' ? '' : 'FORCE INDEX (PRIMARY)';
    return manager.sql`
      SELECT id, ${() => now} AS now FROM usher_webhook ${() => byKey}
      WHERE id IN (${() => [...ids].sort()}) AND status = 'PENDING'
        AND attempts < ${maxAttempts} AND next_attempt_at <= ${() => now}
      ORDER BY id FOR UPDATE SKIP LOCKED`;
  }

  /** Answers with those that ended FAILED by it. */
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
      answers.set(id, { kind: 'not-due', inMs: Math.max((nextAttemptAt ?? now) - now, LOCKED_MS) });
    }
    return failed;
  }
}

/** Asked for twice at a time (BullMQ took a job for stalled) a claim is still given once. */
function takeOnce(answers: Map<string, ClaimResult>, id: string): ClaimResult {
  const answer = answers.get(id) ?? { kind: 'ended' };
  if (answer.kind === 'claimed') answers.set(id, { kind: 'not-due', inMs: LOCKED_MS });
  return answer;
}

/** Webhooks whose last attempt was cut off and whose lease is over end FAILED: there is no sixth. Answers which. */
export async function failExhausted(
  manager: EntityManager,
  ids: string[],
  maxAttempts: number,
  now: number,
): Promise<EndedWebhook[]> {
  const { affected } = await manager.update(
    Webhook,
    { id: In(ids), status: 'PENDING', attempts: MoreThanOrEqual(maxAttempts), nextAttemptAt: LessThanOrEqual(now) },
    { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: now },
  );
  return affected === 0 ? [] : manager.findBy(Webhook, { id: In(ids), status: 'FAILED', finishedAt: now });
}
