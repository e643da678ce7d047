import { Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { ConsoleRoutes } from '../frame/console-route.js';
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
    const body = resendPage({ resend, clientName: client?.name ?? null, selected });
    const isLive = finishedAt === null || (selected ?? []).some(({ sentAgain }) => sentAgain?.status === 'PENDING');
    sendConsolePage(request, reply, { title: 'Send again', section: 'notifications', body, isLive });
  }
}
