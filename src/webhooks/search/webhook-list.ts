import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { Client, ClientSecret } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { namesOf } from '../../database/statements/names.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { SigningSecrets } from '../deliver/signing.js';
import type { Diagnosis } from '../transport/diagnosis.js';
import type { SignedRequest } from '../transport/notification-sender.js';
import { attemptsOf, detailsOf, findWebhook, laterOnes, rowOf, webhooksById, webhooksOf } from '../webhook-queries.js';
import { attemptView, type WebhookView, webhookView } from '../webhook-view.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhook.entity.js';
import type { WebhookCriteria } from './webhook-criteria.js';
import { type WebhookOrder, WebhookSearch } from './webhook-search.js';

/** A webhook as a list of an operator shows it. */
export interface ListedWebhook {
  webhook: WebhookView;
  /** Null if the client was erased. */
  clientName: string | null;
  /** Why the last attempt that ended has failed; null if none failed, or if the webhook was delivered. */
  failure: { error: string; diagnosis: Diagnosis | null } | null;
  /** Of a FAILED webhook: the last one of the same order that followed it. */
  sentAgain: Pick<Webhook, 'id' | 'status'> | null;
}

export type Sent = SignedRequest | string;

/** Lists webhooks for operators: with the names of their clients, why they failed, and what was sent again. */
@Injectable()
export class WebhookList {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly search: WebhookSearch,
    private readonly secrets: SigningSecrets,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** At most `most` webhooks that follow `before` in the order. */
  async page(criteria: WebhookCriteria, before: string | null, most: number, order: WebhookOrder = 'newest') {
    const { ids, ...rest } = await this.search.find(criteria, before, most, order);
    const webhooks = await this.listed(ids);
    const { referenceId, clientId, status, host, reason, endedSince, resendId } = criteria;
    const isWhole =
      before === null &&
      !endedSince &&
      !resendId &&
      (status ?? 'SUCCESS') === 'SUCCESS' &&
      host === null &&
      reason === null;
    if (referenceId === null || !isWhole || webhooks.some(({ webhook }) => webhook.status === 'SUCCESS'))
      return { webhooks, ...rest };
    // What is left of the delivered notification of one order, if its row was deleted because of its age.
    const where = { referenceId, ...(clientId !== null && { clientId }) };
    const deleted = await this.described(await this.dataSource.manager.findBy(DeliveredReference, where));
    return { webhooks: [...deleted, ...webhooks], ...rest };
  }

  /** These webhooks in this order. One that does not exist is left out. */
  async listed(ids: string[]): Promise<ListedWebhook[]> {
    if (ids.length === 0) return [];
    const rows = new Map((await webhooksById(this.dataSource.manager, ids)).map((row) => [row.id, row]));
    return this.described(ids.flatMap((id) => rows.get(id) ?? []));
  }

  /** The webhook with this id, also if only its reference is left. */
  async byId(id: string): Promise<ListedWebhook[]> {
    const found = await rowOf(this.dataSource.manager, id);
    return found ? this.described([found]) : [];
  }

  /** All that is known of one webhook. 404 if there is none with this id. */
  async whole(id: string) {
    const { manager } = this.dataSource;
    const row = await findWebhook(manager, id);
    const { clientId, referenceId } = webhookView(row);
    const [attempts, chain, secrets] = await Promise.all([
      attemptsOf(manager, row),
      webhooksOf(manager, [referenceId]),
      manager.findBy(ClientSecret, { clientId }),
    ]);
    return {
      ...detailsOf(row, attempts, this.options.retry),
      /** All webhooks of its order, the first one first. */
      chain: chain.map(webhookView),
      /** The exact body, and what each attempt sent, or why that is not known. Null if it was deleted because of its age. */
      sent: 'body' in row && row.body ? { body: row.body, requests: this.secrets.sent(row, attempts, secrets) } : null,
    };
  }

  private async described(rows: (Webhook | DeliveredReference)[]): Promise<ListedWebhook[]> {
    if (rows.length === 0) return [];
    const { manager } = this.dataSource;
    const webhooks = rows.map(webhookView);
    const [names, failures, later] = await Promise.all([
      namesOf(
        manager,
        Client,
        webhooks.map(({ clientId }) => clientId),
      ),
      lastFailures(manager, webhooks),
      laterOnes(manager, webhooks),
    ]);
    return webhooks.map((webhook, index) => {
      const sentAgain = later[index] ?? null;
      return {
        webhook: { ...webhook, resentAs: sentAgain?.id ?? null },
        clientName: names.get(webhook.clientId) ?? null,
        failure: failures.get(webhook.id) ?? null,
        sentAgain,
      };
    });
  }
}

async function lastFailures(
  manager: EntityManager,
  webhooks: WebhookView[],
): Promise<Map<string, ListedWebhook['failure']>> {
  const open = new Map(webhooks.filter(({ status }) => status !== 'SUCCESS').map((webhook) => [webhook.id, webhook]));
  const attempts = await manager.find(WebhookAttempt, {
    select: { webhookId: true, number: true, startedAt: true, durationMs: true, error: true, diagnosis: true },
    where: { webhookId: In([...open.keys()]) },
    order: { number: 'ASC' },
  });
  const failures = new Map<string, ListedWebhook['failure']>();
  for (const attempt of attempts) {
    const { error, diagnosis } = attemptView(attempt, open.get(attempt.webhookId) as WebhookView);
    if (error !== null || diagnosis) failures.set(attempt.webhookId, { error: error ?? 'cut off', diagnosis });
  }
  return failures;
}
