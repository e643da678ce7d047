import { Body, Controller, Get, HttpCode, Param, Post, Query, UseFilters, UseGuards } from '@nestjs/common';
import { RequestActor, RequestId } from '../../http/exchange.js';
import { BearerGuard, CurrentClient, CurrentResourceOwner } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { ProblemFilter } from '../../http/error-response.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { KNOWN_QUERY, TakesQuery } from '../../http/problem.js';
import type { Actor } from '../../values/actor.js';
import type { WebhookHealth } from '../webhook-health.js';
import type { ClientWebhook, WebhookPage, WebhookStory } from './client-view.js';
import { ClientWebhooks } from './client-webhooks.js';
import { type TestResult, TestNotifications } from './test-notifications.js';

/** A client's own webhooks and their attempts. */
@Controller('webhooks')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(BearerGuard, KNOWN_QUERY)
export class WebhooksController {
  constructor(
    private readonly webhooks: ClientWebhooks,
    private readonly tests: TestNotifications,
  ) {}

  @Get()
  @TakesQuery()
  page(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Query() query: unknown,
  ): Promise<WebhookPage> {
    return this.webhooks.page({ clientId: client.id, ownerId }, query);
  }

  /** Only with a token of the client itself. It stands before `:id`, which Express would match first. */
  @Get('health')
  health(@CurrentClient() client: Client): Promise<WebhookHealth> {
    return this.webhooks.health(client.id);
  }

  @Get(':id')
  show(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Param('id') id: string,
  ): Promise<WebhookStory> {
    return this.webhooks.show({ clientId: client.id, ownerId }, id);
  }

  /** Only with a token of the client itself. Always 200; the result says whether the receiver accepted the test. */
  @Post('test')
  @HttpCode(200)
  test(@CurrentClient() client: Client, @Body() body: unknown): Promise<TestResult> {
    return this.tests.send(client, body);
  }

  /** Only for a FAILED webhook (specification 6.3). */
  @Post(':id/resend')
  resend(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Param('id') id: string,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
  ): Promise<ClientWebhook> {
    return this.webhooks.resend({ clientId: client.id, ownerId }, id, { requestId, actor });
  }
}
