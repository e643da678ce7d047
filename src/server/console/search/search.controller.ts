import { Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from '../../../http/html.js';
import { ID } from '../../../values/identifier.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import { type ListedWebhook, WebhookList } from '../../../webhooks/search/webhook-list.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { hrefOf, textOf } from '../fields/fields.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { sendConsolePage } from '../frame/frame.js';
import { clientLink, emptyState, shortId } from '../frame/parts.js';
import { notificationTable } from '../notifications/notification-table.js';

const PATH = '/ops/search';
const MAX_FOUND = 50;

export const searchHref = (query: string): string => hrefOf(PATH, { q: query });

/** The search field of all pages. A single match is opened at once. */
@ConsoleRoutes('ops/search')
export class SearchController {
  constructor(
    private readonly webhooks: WebhookList,
    private readonly clients: ClientDirectory,
  ) {}

  @Get()
  async search(@Query('q') given: unknown, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const query = textOf(given);
    const [webhooks, clients] = await Promise.all([
      this.webhooksFor(query),
      query === '' ? [] : this.clients.search(query, MAX_FOUND),
    ]);
    const places = [
      ...clients.map(({ id }) => `/ops/clients/${encodeURIComponent(id)}`),
      ...webhooks.map(({ webhook }) => `/ops/webhooks/${webhook.id}`),
    ];
    if (places.length === 1 && places[0] !== undefined) return void reply.redirect(places[0], 303);
    const names = clients.map(({ id, name }) => html`<li>${clientLink({ id, name })} ${shortId(id)}</li>`);
    const body = html`${places.length === 0 ? emptyState(NOTHING) : null}
    ${
      clients.length === 0
        ? null
        : html`<h2>Clients</h2>
            <ul>
              ${names}
            </ul>`
    }
    ${
      webhooks.length === 0
        ? null
        : html`<h2>Notifications</h2>
            ${notificationTable(webhooks)}`
    }`;
    sendConsolePage(request, reply, { title: 'Found', section: 'notifications', query, body });
  }

  /** The webhook with this id, or those of the order with this key. */
  private async webhooksFor(query: string): Promise<ListedWebhook[]> {
    if (!ReferenceId.safeParse(query).success) return [];
    const byId = ID.test(query) ? await this.webhooks.byId(query) : [];
    if (byId.length > 0) return byId;
    return (await this.webhooks.page({ ...ANY_WEBHOOK, referenceId: query }, null, MAX_FOUND)).webhooks;
  }
}

const NOTHING = 'No webhook has this id or order, and no client has this id or name.';
