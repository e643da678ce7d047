import { Inject, Injectable } from '@nestjs/common';
import {
  type DataSource,
  type FindOptionsWhere,
  LessThan,
  MoreThanOrEqual,
  And,
  Repository,
  type FindOperator,
} from 'typeorm';
import { PendingLimit } from '../pending-limit.js';
import type { Holder } from '../../auth/bearer/bearer.guard.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { validated } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type WebhookHealth, webhookHealth } from '../webhook-health.js';
import { webhookView } from '../webhook-view.js';
import { Webhook } from '../webhook.entity.js';
import { unknownWebhook, type WebhookDetails } from '../webhook-queries.js';
import { type ResendOptions, WebhookService } from '../webhook.service.js';
import {
  type ClientWebhook,
  clientView,
  type WebhookPage,
  WebhookQuery,
  type WebhookStory,
  hidePrivateResponse,
} from './client-view.js';

/** A client's own webhooks. Any other webhook is answered like one that does not exist. */
@Injectable()
export class ClientWebhooks {
  private readonly webhooks: Repository<Webhook>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly service: WebhookService,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.webhooks = dataSource.getRepository(Webhook);
  }

  /** Newest first. Ids sort by time, so a page does not change when new webhooks arrive. */
  async page(holder: Holder, query: unknown): Promise<WebhookPage> {
    const { limit, ...filter } = validated(WebhookQuery, query, 'query');
    const rows = await this.webhooks.find({
      where: conditions(holder, filter),
      order: { id: 'DESC' },
      take: limit + 1,
    });
    const data = rows.slice(0, limit).map((row) => clientView(webhookView(row)));
    if (data.length === 0 && isOnlyByReference(filter)) return this.deleted(holder, filter.reference);
    return { data, nextCursor: rows.length > limit ? (data.at(-1)?.id ?? null) : null };
  }

  /** A reference whose webhook was deleted because of its age: it is known that it was delivered. */
  private async deleted(holder: Holder, reference: string): Promise<WebhookPage> {
    const found = await this.service.list({ referenceId: reference, status: 'SUCCESS' });
    const data = found.filter((webhook) => isHeldBy(holder, webhook)).map(clientView);
    return { data, nextCursor: null };
  }

  async show(holder: Holder, id: string): Promise<WebhookStory> {
    const { webhook, attempts, plan } = await this.own(holder, id);
    const { environment } = this.options;
    return { ...clientView(webhook), attempts: attempts.map((one) => hidePrivateResponse(one, environment)), plan };
  }

  /** How the receivers of a client do. */
  health(clientId: string): Promise<WebhookHealth> {
    return webhookHealth(this.dataSource, clientId);
  }

  async resend(holder: Holder, id: string, options: ResendOptions): Promise<ClientWebhook> {
    await this.own(holder, id);
    await this.pending.check(holder.clientId);
    return clientView(await this.service.resend(id, options));
  }

  private async own(holder: Holder, id: string): Promise<WebhookDetails> {
    const details = await this.service.show(id);
    if (!isHeldBy(holder, details.webhook)) throw unknownWebhook(id);
    return details;
  }
}

const isHeldBy = ({ clientId, ownerId }: Holder, webhook: Holder): boolean =>
  webhook.clientId === clientId && (ownerId === null || webhook.ownerId === ownerId);

type Filter = Omit<WebhookQuery, 'limit'>;

function isOnlyByReference(filter: Filter): filter is Filter & { reference: string } {
  const { reference, status = 'SUCCESS', ...others } = filter;
  const isOnly = Object.values(others).every((value) => value === undefined);
  return reference !== undefined && status === 'SUCCESS' && isOnly;
}

function conditions({ clientId, ownerId }: Holder, query: Filter): FindOptionsWhere<Webhook> {
  const { status, reference, createdAfter, createdBefore, cursor } = query;
  const times = [
    ...(createdAfter ? [MoreThanOrEqual(Date.parse(createdAfter))] : []),
    ...(createdBefore ? [LessThan(Date.parse(createdBefore))] : []),
  ] satisfies FindOperator<number>[];
  return {
    clientId,
    ...(ownerId !== null && { ownerId }),
    ...(status && { status }),
    ...(reference !== undefined && { referenceId: reference }),
    ...(times.length > 0 && { createdAt: And(...times) }),
    ...(cursor && { id: LessThan(cursor) }),
  };
}
