import { Get, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { Problem } from '../../../http/problem.js';
import type { Actor } from '../../../values/actor.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { resendPage } from './resend-page.js';

/** The progress of a request to send many notifications again. */
@ConsoleRoutes('ops/resends')
export class ResendsController {
  constructor(
    private readonly resends: WebhookResends,
    private readonly webhooks: WebhookList,
    private readonly clients: ClientDirectory,
  ) {}

  @Get(':id')
  async show(@Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const resend = await this.resends.get(id);
    const { clientId, webhookIds, finishedAt } = resend;
    const selected = webhookIds && (await this.webhooks.listed(webhookIds));
    const client = clientId === null ? null : await this.clients.find(clientId);
    const body = resendPage(request, { resend, clientName: client?.name ?? null, selected });
    const isLive = finishedAt === null || (selected ?? []).some(({ sentAgain }) => sentAgain?.status === 'PENDING');
    sendConsolePage(request, reply, { title: 'Send again', section: 'notifications', body, isLive });
  }

  /** Answers with a redirect also if the request has ended meanwhile, because its page says so. */
  @Post(':id/stop')
  @RouteConfig(FORM_ROUTE)
  async stop(
    @Param('id') id: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    formFields(request);
    await this.resends.stop(id, actor).catch((error: unknown) => {
      if (!(error instanceof Problem) || error.getStatus() !== 409) throw error;
    });
    void reply.redirect(`/ops/resends/${id}`, 303);
  }
}
