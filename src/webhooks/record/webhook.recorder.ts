import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AfterCommit } from '../../database/after-commit.js';
import { unprocessable } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { DeliveryQueue } from '../queue/delivery.queue.js';
import { deliveredView, type WebhookView, webhookView } from '../webhook-view.js';
import { DeliveredReference, Webhook } from '../webhook.entity.js';
import { insertWebhook, liveWebhook, lookUp } from './record-statements.js';

export interface NewWebhook {
  referenceId: string;
  eventType: string;
  clientId: string;
  /** The resource owner of the order, or null. */
  ownerId: string | null;
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
   * (specification 6.3). The unique live key decides between concurrent callers. A row with a live key that the purge deletes
   * left a DeliveredReference long before, so the look-up before the insert finds one of the two.
   */
  async record(manager: EntityManager, request: NewWebhook): Promise<{ webhook: WebhookView; isNew: boolean }> {
    const { registered, now, deliveredId } = await lookUp(manager, request);
    if (deliveredId !== null) return { webhook: await deliveredEarlier(manager, deliveredId), isNew: false };
    const row = this.newRow(registered, now, request);
    await insertWebhook(manager, row);
    const { webhook, lastFailureAt } = await liveWebhook(manager, row.liveKey);
    const isNew = webhook.id === row.id;
    if (isNew) await this.schedule(manager, webhook, lastFailureAt);
    return { webhook: webhookView(webhook), isNew };
  }

  /** Due at once, but not within the minimum interval after the last attempt of an earlier FAILED webhook. */
  private async schedule(manager: EntityManager, webhook: Webhook, lastFailureAt: number | null): Promise<void> {
    const { id, createdAt } = webhook;
    const earliest = lastFailureAt === null ? createdAt : lastFailureAt + this.options.retry.minIntervalMs;
    const nextAttemptAt = Math.max(createdAt, earliest);
    if (nextAttemptAt > createdAt) await manager.update(Webhook, { id }, { nextAttemptAt });
    webhook.nextAttemptAt = nextAttemptAt;
    this.afterCommit.do(manager, () => this.queue.enqueue(webhook, nextAttemptAt - createdAt));
  }

  private newRow(registered: string | null, now: number, { notifyUrl, ...request }: NewWebhook) {
    return {
      ...request,
      id: newId(this.options.environment, now),
      liveKey: liveKeyOf(request),
      notifyUrl: notifyUrl ?? registeredUrl(request.clientId, registered),
      usesClientUrl: notifyUrl === null,
      status: 'PENDING' as const,
      attempts: 0,
      nextAttemptAt: now,
      createdAt: now,
      finishedAt: null,
      purgedAt: null,
    };
  }
}

/** The unique key of the one webhook of a reference that is PENDING or SUCCESS. */
export const liveKeyOf = ({ eventType, referenceId }: Pick<Webhook, 'eventType' | 'referenceId'>): string =>
  `${eventType}:${referenceId}`;

const deliveredEarlier = async (manager: EntityManager, webhookId: string): Promise<WebhookView> =>
  deliveredView(await manager.findOneByOrFail(DeliveredReference, { webhookId }));

function registeredUrl(clientId: string, notifyUrl: string | null): string {
  if (notifyUrl === null)
    throw unprocessable(`client ${clientId} has no Notify URL; set one with "usher client set-notify-url"`);
  return notifyUrl;
}
