import { Inject, Injectable } from '@nestjs/common';
import { type EntityManager, Not } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { AfterCommit } from '../../database/after-commit.js';
import { databaseNow } from '../../database/sql.js';
import { notFound, unprocessable } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { Webhook } from '../webhook.entity.js';

export interface NewWebhook {
  referenceId: string;
  eventType: string;
  clientId: string;
  /** Null: use the client's registered Notify URL. */
  notifyUrl: string | null;
  body: string;
  resendOf: string | null;
  requestId: string | null;
}

/** Writes webhooks in the caller's transaction and adds their jobs after the commit. */
@Injectable()
export class WebhookRecorder {
  constructor(
    private readonly afterCommit: AfterCommit,
    private readonly queue: DeliveryQueue,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Records a new webhook, or returns the earlier one of this reference and event that is PENDING or SUCCESS
   * (specification 6.3). The unique live key decides between concurrent callers.
   */
  async record(manager: EntityManager, request: NewWebhook): Promise<{ webhook: Webhook; isNew: boolean }> {
    const row = await this.newRow(manager, request);
    await manager
      .createQueryBuilder()
      .insert()
      .into(Webhook)
      .values(row)
      // Changes nothing. It makes a concurrent insert of the same key wait for the first one to commit.
      .orUpdate(['live_key'], ['live_key'])
      .updateEntity(false)
      .execute();
    const webhook = await liveWebhook(manager, row.liveKey);
    const isNew = webhook.id === row.id;
    if (isNew) await this.schedule(manager, webhook);
    return { webhook, isNew };
  }

  /**
   * Due at once, but not within the minimum interval after the last attempt of an earlier FAILED webhook. Called after the
   * insert: from then on no other webhook of this reference makes an attempt.
   */
  private async schedule(manager: EntityManager, webhook: Webhook): Promise<void> {
    const { id, createdAt } = webhook;
    const lastAttemptAt = await lastFailure(manager, webhook);
    const earliest = lastAttemptAt === null ? createdAt : lastAttemptAt + this.options.retry.minIntervalMs;
    const nextAttemptAt = Math.max(createdAt, earliest);
    if (nextAttemptAt > createdAt) await manager.update(Webhook, { id }, { nextAttemptAt });
    webhook.nextAttemptAt = nextAttemptAt;
    this.afterCommit.do(manager, () => this.queue.enqueue(webhook, nextAttemptAt - createdAt));
  }

  private async newRow(manager: EntityManager, { notifyUrl, ...request }: NewWebhook) {
    const client = await clientOf(manager, request.clientId);
    const now = await databaseNow(manager);
    return {
      ...request,
      id: newId(this.options.environment, now),
      liveKey: liveKeyOf(request),
      notifyUrl: notifyUrl ?? registeredUrl(client),
      usesClientUrl: notifyUrl === null,
      status: 'PENDING' as const,
      attempts: 0,
      nextAttemptAt: now,
      createdAt: now,
      finishedAt: null,
    };
  }
}

/** The unique key of the one webhook of a reference that is PENDING or SUCCESS. */
export const liveKeyOf = ({ eventType, referenceId }: Pick<Webhook, 'eventType' | 'referenceId'>): string =>
  `${eventType}:${referenceId}`;

/** Locks the row: a REPEATABLE READ transaction must also see a webhook that was committed after it began. */
const liveWebhook = (manager: EntityManager, liveKey: string): Promise<Webhook> =>
  manager.findOneOrFail(Webhook, { where: { liveKey }, lock: { mode: 'pessimistic_write' } });

/** When the last attempt of an earlier webhook of this reference failed, or null. No lock: gap locks would block others. */
async function lastFailure(manager: EntityManager, { id, referenceId, eventType, createdAt }: Webhook) {
  const earlier = await manager.findOne(Webhook, {
    select: { id: true, finishedAt: true },
    where: { referenceId, eventType, id: Not(id) },
    order: { id: 'DESC' },
  });
  // A REPEATABLE READ transaction can see a failed webhook as still PENDING. It then failed at `createdAt` or before.
  return earlier ? (earlier.finishedAt ?? createdAt) : null;
}

async function clientOf(manager: EntityManager, id: string): Promise<Client> {
  const client = await manager.findOneBy(Client, { id });
  if (!client) throw notFound(`there is no client ${id}`);
  return client;
}

function registeredUrl({ id, notifyUrl }: Client): string {
  if (notifyUrl === null)
    throw unprocessable(`client ${id} has no Notify URL; set one with "usher client set-notify-url"`);
  return notifyUrl;
}
