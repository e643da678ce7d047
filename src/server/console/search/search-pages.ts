import { Injectable } from '@nestjs/common';
import { html } from '../../../http/html.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import { type ListedWebhook, WebhookList } from '../../../webhooks/search/webhook-list.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { hrefOf } from '../../../http/pages/fields.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { emptyState, shortId } from '../../../http/pages/parts.js';
import { clientLink, clientPath } from '../frame/links.js';
import { notificationTable } from '../notifications/notification-table.js';

const PATH = '/ops/search';
const MAX_FOUND = 50;

export const searchHref = (query: string): string => hrefOf(PATH, { q: query });

/** The search field of all pages. A single match is opened at once. */
@Injectable()
export class SearchPages {
  constructor(
    private readonly webhooks: WebhookList,
    private readonly clients: ClientDirectory,
  ) {}

  readonly pages: Page[] = [{ path: PATH, show: (visit) => this.search(visit) }];

  private async search({ query: { q: query = '' } }: Visit): Promise<View | string> {
    const [webhooks, clients] = await Promise.all([
      this.webhooksFor(query),
      query === '' ? [] : this.clients.search(query, MAX_FOUND),
    ]);
    const places = [
      ...clients.map(({ id }) => clientPath(id)),
      ...webhooks.map(({ webhook }) => `/ops/webhooks/${webhook.id}`),
    ];
    const [first, second] = places;
    if (first && !second) return first;
    const body = html`${!first && emptyState(NOTHING)}
    ${
      clients.length > 0 &&
      html`<h2>Clients</h2>
        <ul>
          ${clients.map((client) => html`<li>${clientLink(client)} ${shortId(client.id)}</li>`)}
        </ul>`
    }
    ${
      webhooks.length > 0 &&
      html`<h2>Notifications</h2>
        ${notificationTable(webhooks)}`
    }`;
    return { title: 'Found', section: 'notifications', query, body };
  }

  /** The webhook with this id, or those of the order with this key. */
  private async webhooksFor(query: string): Promise<ListedWebhook[]> {
    if (!ReferenceId.safeParse(query).success) return [];
    const byId = await this.webhooks.byId(query);
    if (byId.length > 0) return byId;
    return (await this.webhooks.page({ ...ANY_WEBHOOK, referenceId: query }, null, MAX_FOUND)).webhooks;
  }
}

const NOTHING = 'No webhook has this id or order, and no client has this id or name.';
