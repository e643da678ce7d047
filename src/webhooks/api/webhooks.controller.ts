import { Body, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { And, type DataSource, type FindOptionsWhere, LessThan, MoreThanOrEqual } from 'typeorm';
import { ClientController, CurrentClient, CurrentHolder, type Holder } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { RequestActor, RequestId } from '../../http/exchange.js';
import { TakesQuery, validated } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { PendingLimit } from '../pending-limit.js';
import { webhookHealth } from '../webhook-health.js';
import { unknownWebhook } from '../webhook-queries.js';
import { webhookView } from '../webhook-view.js';
import { Webhook } from '../webhook.entity.js';
import { WebhookService } from '../webhook.service.js';
import { clientView, hidePrivateResponse, type WebhookPage, WebhookQuery, type WebhookStory } from './client-view.js';
import { TestNotifications } from './test-notifications.js';

/** A client's own webhooks and their attempts. Any other webhook is answered like one that does not exist. */
@ClientController('webhooks')
export class WebhooksController {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly webhooks: WebhookService,
    private readonly tests: TestNotifications,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Newest first. Ids sort by time, so a page does not change when new webhooks arrive. */
  @Get()
  @TakesQuery()
  async page(@CurrentHolder() holder: Holder, @Query() query: unknown): Promise<WebhookPage> {
    const { limit, ...filter } = validated(WebhookQuery, query, 'query');
    const rows = await this.dataSource.manager.find(Webhook, {
      where: conditions(holder, filter),
      order: { id: 'DESC' },
      take: limit + 1,
    });
    if (rows.length === 0) return { data: await this.deleted(holder, filter), nextCursor: null };
    const data = rows.slice(0, limit).map((row) => clientView(webhookView(row)));
    return { data, nextCursor: rows.length > limit ? (data.at(-1)?.id ?? null) : null };
  }

  /** A reference whose webhook was deleted because of its age: it is known that it was delivered. */
  private async deleted(holder: Holder, { reference, status = 'SUCCESS', ...others }: Filter) {
    if (reference === undefined || status !== 'SUCCESS' || Object.keys(others).length > 0) return [];
    const found = await this.webhooks.list({ referenceId: reference, status });
    return found.filter((webhook) => isHeldBy(holder, webhook)).map(clientView);
  }

  /** Only with a token of the client itself. It stands before `:id`, which Express would match first. */
  @Get('health')
  health(@CurrentClient() client: Client) {
    return webhookHealth(this.dataSource, client.id);
  }

  @Get(':id')
  async show(@CurrentHolder() holder: Holder, @Param('id') id: string): Promise<WebhookStory> {
    const { webhook, attempts, plan } = await this.own(holder, id);
    const { environment } = this.options;
    return { ...clientView(webhook), attempts: attempts.map((one) => hidePrivateResponse(one, environment)), plan };
  }

  /** Only with a token of the client itself. Always 200; the result says whether the receiver accepted the test. */
  @Post('test')
  @HttpCode(200)
  test(@CurrentClient() client: Client, @Body() body: unknown) {
    return this.tests.send(client, body);
  }

  /** Only for a FAILED webhook (specification 6.3). */
  @Post(':id/resend')
  async resend(
    @CurrentHolder() holder: Holder,
    @Param('id') id: string,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
  ) {
    await this.own(holder, id);
    await this.pending.check(holder.clientId);
    return clientView(await this.webhooks.resend(id, { requestId, actor }));
  }

  private async own(holder: Holder, id: string) {
    const details = await this.webhooks.show(id);
    if (!isHeldBy(holder, details.webhook)) throw unknownWebhook(id);
    return details;
  }
}

const isHeldBy = ({ clientId, ownerId }: Holder, webhook: Holder) =>
  webhook.clientId === clientId && (ownerId === null || webhook.ownerId === ownerId);

type Filter = Omit<WebhookQuery, 'limit'>;

function conditions({ clientId, ownerId }: Holder, query: Filter): FindOptionsWhere<Webhook> {
  const { status, reference, createdAfter, createdBefore, cursor } = query;
  const times = [
    ...(createdAfter ? [MoreThanOrEqual(Date.parse(createdAfter))] : []),
    ...(createdBefore ? [LessThan(Date.parse(createdBefore))] : []),
  ];
  return {
    clientId,
    ...(ownerId !== null && { ownerId }),
    ...(status && { status }),
    ...(reference !== undefined && { referenceId: reference }),
    ...(times.length > 0 && { createdAt: And(...times) }),
    ...(cursor && { id: LessThan(cursor) }),
  };
}
