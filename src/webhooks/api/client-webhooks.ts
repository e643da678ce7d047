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
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { notFound, validated } from '../../http/problem.js';
import { ID } from '../../values/identifier.js';
import { webhookView } from '../webhook-view.js';
import { Webhook } from '../webhook.entity.js';
import { WebhookService } from '../webhook.service.js';
import {
  type ClientWebhook,
  clientView,
  type WebhookPage,
  WebhookQuery,
  type WebhookStory,
  hidePrivateResponse,
} from './client-view.js';

/** A client's own webhooks. A webhook of another client is answered like one that does not exist. */
@Injectable()
export class ClientWebhooks {
  private readonly webhooks: Repository<Webhook>;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly service: WebhookService,
  ) {
    this.webhooks = dataSource.getRepository(Webhook);
  }

  /** Newest first. Ids sort by time, so a page does not change when new webhooks arrive. */
  async page(clientId: string, query: unknown): Promise<WebhookPage> {
    const { limit, ...filter } = validated(WebhookQuery, query);
    const rows = await this.webhooks.find({
      where: conditions(clientId, filter),
      order: { id: 'DESC' },
      take: limit + 1,
    });
    const data = rows.slice(0, limit).map((row) => clientView(webhookView(row)));
    return { data, nextCursor: rows.length > limit ? (data.at(-1)?.id ?? null) : null };
  }

  async show(clientId: string, id: string): Promise<WebhookStory> {
    await this.checkOwner(clientId, id);
    const { webhook, attempts } = await this.service.show(id);
    return { ...clientView(webhook), attempts: attempts.map(hidePrivateResponse) };
  }

  async resend(clientId: string, id: string, requestId: string): Promise<ClientWebhook> {
    await this.checkOwner(clientId, id);
    return clientView(await this.service.resend(id, requestId));
  }

  private async checkOwner(clientId: string, id: string): Promise<void> {
    const isOwn = ID.test(id) && (await this.webhooks.existsBy({ id, clientId }));
    if (!isOwn) throw notFound(`there is no webhook ${id.slice(0, 64)}`);
  }
}

function conditions(clientId: string, query: Omit<WebhookQuery, 'limit'>): FindOptionsWhere<Webhook> {
  const { status, reference, createdAfter, createdBefore, cursor } = query;
  const times = [
    ...(createdAfter ? [MoreThanOrEqual(Date.parse(createdAfter))] : []),
    ...(createdBefore ? [LessThan(Date.parse(createdBefore))] : []),
  ] satisfies FindOperator<number>[];
  return {
    clientId,
    ...(status && { status }),
    ...(reference !== undefined && { referenceId: reference }),
    ...(times.length > 0 && { createdAt: And(...times) }),
    ...(cursor && { id: LessThan(cursor) }),
  };
}
