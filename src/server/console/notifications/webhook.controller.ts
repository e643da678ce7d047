import { Get, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { Problem } from '../../../http/problem.js';
import { RequestId } from '../../../http/exchange.js';
import type { Actor } from '../../../values/actor.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { WebhookService } from '../../../webhooks/webhook.service.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { webhookPage } from './webhook-page.js';

/** One webhook with its attempts. */
@ConsoleRoutes('ops/webhooks')
export class WebhookController {
  constructor(
    private readonly webhooks: WebhookService,
    private readonly list: WebhookList,
    private readonly clients: ClientDirectory,
  ) {}

  @Get(':id')
  async show(@Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.showWebhook(id, request, reply);
  }

  /** Answers with a redirect, so reloading the page does not resend again. */
  @Post(':id/resend')
  @RouteConfig(FORM_ROUTE)
  async resend(
    @Param('id') id: string,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    formFields(request);
    try {
      const resent = await this.webhooks.resend(id, { requestId, actor });
      void reply.redirect(`/ops/webhooks/${resent.id}`, 303);
    } catch (error) {
      if (!(error instanceof Problem) || error.getStatus() !== 409) throw error;
      await this.showWebhook(id, request, reply, error);
    }
  }

  private async showWebhook(
    id: string,
    request: FastifyRequest,
    reply: FastifyReply,
    refusal: Problem | null = null,
  ): Promise<void> {
    const shown = await this.webhooks.show(id);
    const { clientId, referenceId, status } = shown.webhook;
    const [client, chain, text] = await Promise.all([
      this.clients.find(clientId),
      this.list.ofOrder(referenceId),
      this.list.bodyOf(id),
    ]);
    const details = { ...shown, clientName: client?.name ?? null, chain, body: text, refusal: refusal?.detail ?? null };
    const body = webhookPage(request, details);
    const isLive = status === 'PENDING';
    const page = { title: `Notification ${id}`, section: 'notifications', body, isLive } as const;
    sendConsolePage(request, reply, page, refusal?.getStatus() ?? 200);
  }
}
