import { Controller, Get, Param, Post, Query, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import { AuditLog } from '../../audit/audit.module.js';
import { RequestActor } from '../../audit/request-actor.js';
import { html } from '../../http/html.js';
import { Problem } from '../../http/problem.js';
import { RequestId } from '../../http/request-id.js';
import type { Actor } from '../../values/actor.js';
import { WebhookService } from '../../webhooks/webhook.service.js';
import { Backlog, type QueueDepth } from '../health/backlog.js';
import { FORM_ROUTE } from '../request-bodies.js';
import { Activity } from './activity.js';
import { overview, type ShownQueue, webhookTable } from './overview-page.js';
import { type Page, page, PAGE_HEADERS } from './page.js';
import { webhookPage } from './webhook-page.js';

/** The operator's pages. operator-access.ts has checked the request before. */
@Controller('ops')
export class ConsoleController {
  constructor(
    private readonly webhooks: WebhookService,
    private readonly activity: Activity,
    private readonly backlog: Backlog,
    private readonly audit: AuditLog,
  ) {}

  @Get()
  async home(@Query('q') given: unknown, @Res() reply: FastifyReply): Promise<void> {
    const query = typeof given === 'string' ? given.trim() : '';
    if (query !== '') return this.searchResults(query, reply);
    const [recent, due, queues] = await Promise.all([
      this.activity.recent.get(),
      this.backlog.due.get(),
      this.backlog.queues.get().then((queues) => queues && Promise.all(queues.map((queue) => this.shown(queue)))),
    ]);
    const databaseDown = html`<p class="note" role="alert">The database does not answer.</p>`;
    const body = html`${recent && due ? null : databaseDown}${overview({ recent, due, queues })}`;
    send(reply, 200, { title: 'Deliveries', body });
  }

  @Get('webhooks/:id')
  async show(@Param('id') id: string, @Res() reply: FastifyReply): Promise<void> {
    await this.showWebhook(id, reply, 200);
  }

  /** Answers with a redirect, so reloading the page does not resend again. */
  @Post('webhooks/:id/resend')
  @RouteConfig(FORM_ROUTE)
  async resend(
    @Param('id') id: string,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    try {
      const resent = await this.webhooks.resend(id, { requestId, actor });
      reply.redirect(`/ops/webhooks/${resent.id}`, 303);
    } catch (error) {
      if (!(error instanceof Problem) || error.getStatus() !== 409) throw error;
      await this.showWebhook(id, reply, error.getStatus(), error.detail);
    }
  }

  private async shown(depth: QueueDepth): Promise<ShownQueue> {
    if (!depth.isPaused) return { ...depth, pausedBy: null };
    const subjects = [`queue:${depth.queue}`, 'queue:all'];
    const found = await Promise.all(
      subjects.map((subject) => this.audit.list({ subject, action: 'queue.paused', limit: 1 }).catch(() => [])),
    );
    const [newest] = found.flat().sort((a, b) => b.createdAt - a.createdAt);
    return { ...depth, pausedBy: newest ? `${newest.actor} since ${new Date(newest.createdAt).toISOString()}` : null };
  }

  private async showWebhook(id: string, reply: FastifyReply, status: number, refusal?: string): Promise<void> {
    const shown = await this.webhooks.show(id);
    const body = webhookPage({ ...shown, ...(refusal !== undefined && { refusal }) });
    send(reply, status, { title: shown.webhook.status, body });
  }

  private async searchResults(query: string, reply: FastifyReply): Promise<void> {
    const body = html`<h2>Found</h2>
      ${webhookTable(await this.activity.search(query), 'No webhook has this id, order or client.')}`;
    send(reply, 200, { title: 'Search', query, body });
  }
}

function send(reply: FastifyReply, status: number, content: Page): void {
  reply.status(status).headers(PAGE_HEADERS).send(page(content));
}
