import { Body, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClientController, CurrentClient, CurrentHolder, type Holder } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { RequestActor, RequestId } from '../../http/exchange.js';
import { pageOf } from '../../http/operation.js';
import { TakesQuery, validated } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { PendingLimit } from '../pending-limit.js';
import { webhookHealth } from '../webhook-health.js';
import { listWebhooks, unknownWebhook } from '../webhook-queries.js';
import { WebhookService } from '../webhook.service.js';
import { clientView, hidePrivateResponse, type WebhookPage, WebhookQuery, type WebhookStory } from './client-view.js';
import { TestNotifications } from './test-notifications.js';

/** A client's own webhooks and their attempts. The answer for a webhook of another client is 404. */
@ClientController('webhooks')
export class WebhooksController {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly webhooks: WebhookService,
    private readonly tests: TestNotifications,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  @Get()
  @TakesQuery()
  async page(@CurrentHolder() holder: Holder, @Query() query: unknown): Promise<WebhookPage> {
    const { limit, ...filter } = validated(WebhookQuery, query, 'query');
    const found = await listWebhooks(this.dataSource, { holder, ...filter, limit: limit + 1 });
    const { data, ...end } = pageOf(found, limit, ({ id }) => id);
    return { data: data.map(clientView), ...end };
  }

  /** Only with a token of the client itself. Declared before `:id`, which would match `health` too. */
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
