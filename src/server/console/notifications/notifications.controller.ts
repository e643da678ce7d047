import { Get, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { RequestId } from '../../../http/exchange.js';
import type { Actor } from '../../../values/actor.js';
import { ID } from '../../../values/identifier.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { textOf } from '../fields/fields.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { NotificationFilters } from './notification-filter.js';
import { isOpen, selectedIds } from './notification-table.js';
import { notificationsPage } from './notifications-page.js';

const PAGE_SIZE = 50;

interface Asked {
  input: unknown;
  refusal?: string;
}

/** The list of notifications, and what sends many of them again. */
@ConsoleRoutes('ops/notifications')
export class NotificationsController {
  constructor(
    private readonly filters: NotificationFilters,
    private readonly webhooks: WebhookList,
    private readonly resends: WebhookResends,
  ) {}

  @Get()
  list(@Query() input: unknown, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send(request, reply, { input });
  }

  @Post('resend')
  @RouteConfig(FORM_ROUTE)
  async resend(
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const input = formFields(request);
    const ids = selectedIds(input).filter((id) => ID.test(id));
    if (ids.length === 0) return this.send(request, reply, { input, refusal: 'Select at least one notification.' });
    const id = await this.resends.resendChosen(ids, { requestId, actor });
    void reply.redirect(`/ops/resends/${id}`, 303);
  }

  @Post('resend-all')
  @RouteConfig(FORM_ROUTE)
  async resendAll(
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const input = formFields(request);
    const { criteria } = await this.filters.read(input, Date.now());
    if (input.confirmed !== 'yes') return this.send(request, reply, { input, refusal: NOT_CONFIRMED });
    if (criteria === null) return this.send(request, reply, { input, refusal: 'The filter has a fault.' });
    const id = await this.resends.startFor(criteria, { requestId, actor });
    void reply.redirect(`/ops/resends/${id}`, 303);
  }

  private async send(request: FastifyRequest, reply: FastifyReply, { input, refusal }: Asked): Promise<void> {
    const filter = await this.filters.read(input, Date.now());
    const given = textOf((input as { before?: unknown }).before);
    const before = ID.test(given) ? given : null;
    const page = filter.criteria && (await this.webhooks.page(filter.criteria, before, PAGE_SIZE));
    const shown = { filter, page, isFirst: before === null, refusal: refusal ?? null };
    const body = notificationsPage(request, shown);
    // Reloading would untick what is selected.
    const isLive = before === null && page !== null && !page.webhooks.some(isOpen);
    const status = page === null || refusal !== undefined ? 400 : 200;
    sendConsolePage(request, reply, { title: 'Notifications', section: 'notifications', body, isLive }, status);
  }
}

const NOT_CONFIRMED = 'Nothing was sent. Tick the box to confirm that all of them are sent again.';
