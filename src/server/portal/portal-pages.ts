import { Injectable } from '@nestjs/common';
import { html } from '../../http/html.js';
import { inputField } from '../../http/pages/fields.js';
import { listPage } from '../../http/pages/list.js';
import { notice, table } from '../../http/pages/parts.js';
import type { Page, Visit } from '../../http/pages/site.js';
import { OrderTotals } from '../../orders/list/order-totals.js';
import { PORTAL_PATH } from '../../portal/portal-links.js';
import { type UndeliveredNotification, UndeliveredWebhooks } from '../../webhooks/undelivered/undelivered-webhooks.js';
import { AuditSearch, type ListedEvent } from '../console/audit/audit-search.js';
import { ClientDetailsReader } from '../console/clients/client-details.js';
import { notifications, orderColumns, summary } from '../console/clients/client-page.js';
import { webhookLink } from '../console/frame/links.js';
import { healthTable } from '../console/receivers/receiver-parts.js';
import { OVERVIEW_PATH } from './portal-site.js';

const MAX_ORDERS = 100;

/** What a client sees in its portal besides its notifications and its settings. */
@Injectable()
export class PortalPages {
  constructor(
    private readonly details: ClientDetailsReader,
    private readonly undelivered: UndeliveredWebhooks,
    private readonly totals: OrderTotals,
    private readonly audit: AuditSearch,
  ) {}

  readonly pages: Page[] = [
    {
      path: OVERVIEW_PATH,
      show: async (visit) => {
        const details = await this.details.read(clientOf(visit));
        const { deliveriesPaused: paused } = details.account;
        const body = html`${paused && notice('warning', html`Your operator has paused deliveries: ${paused.reason}`)}
          ${summary(visit, details)}
          <p class="actions"><a class="button" href="${PORTAL_PATH}/settings#notify-url">Change the Notify URL</a></p>
          <h2>Receivers</h2>
          ${healthTable(details.health, PORTAL_PATH)}
          <h2>Notifications</h2>
          ${notifications(visit, details)}`;
        return { title: 'Overview', section: 'overview', body, isLive: true };
      },
    },
    listPage<UndeliveredNotification, object>({
      path: `${PORTAL_PATH}/missed`,
      title: 'Missed',
      section: 'missed',
      noun: ['notification', 'notifications'],
      fields: {},
      hint: () =>
        html`<p class="hint">What is pending or has failed, and was not delivered otherwise. CSV is all of it.</p>`,
      read: async (_, { after, most }, visit) => {
        const rows: UndeliveredNotification[] = [];
        const query = { limit: most, ...(after && { cursor: after }) };
        for await (const page of this.undelivered.pages({ clientId: clientOf(visit), ownerId: null }, query))
          rows.push(...page);
        return { rows, next: rows.length < most ? null : idOf(rows.at(-1)) };
      },
      count: () => Promise.resolve(null),
      columns: {
        Notification: { value: idOf, cell: (row) => webhookLink(idOf(row), PORTAL_PATH) },
        Body: { value: ({ body }) => body, cell: ({ body }) => html`<code>${body}</code>` },
      },
      nothing: ['Nothing was missed.', ''],
    }),
    {
      path: `${PORTAL_PATH}/orders`,
      show: async (visit) => {
        const clientId = clientOf(visit);
        const { day = new Date().toISOString().slice(0, 10) } = visit.query;
        const { currencies } = await this.totals.of({ clientId, ownerId: null }, { day });
        const body = html`<form class="filter" method="get" action="${visit.path}">
            ${inputField({ name: 'day', label: 'Day (UTC)', value: day })} <button>Show the totals</button>
          </form>
          ${table(
            {
              Currency: ({ currencyCode }) => currencyCode,
              Completed: { number: ({ count }) => count },
              'To pay': { number: ({ payableAmount }) => (Number(payableAmount) / 100).toFixed(2) },
            },
            currencies,
            'No order was completed on this day.',
          )}
          <h2>The newest orders</h2>
          ${table(orderColumns(PORTAL_PATH), await this.details.orders(clientId, MAX_ORDERS), 'Your orders will be here.')}`;
        return { title: 'Orders', section: 'orders', body };
      },
    },
    listPage<ListedEvent, object>({
      path: `${PORTAL_PATH}/record`,
      title: 'Record',
      section: 'record',
      noun: ['event', 'events'],
      fields: {},
      hint: () => html`<p class="hint">Who signed in here, and what was done here or by the API.</p>`,
      read: async (_, part, { actor }) => {
        const { rows, ...rest } = await this.audit.find({ ...ANY_EVENT, actor: actor.name }, part);
        return { rows: await this.audit.events(rows), ...rest };
      },
      count: () => Promise.resolve(null),
      columns: {
        When: { time: ({ createdAt }) => createdAt },
        What: { value: ({ action }) => action },
        About: { value: ({ subject }) => subject },
        From: { value: ({ address }) => address },
      },
      nothing: ['What is done here will be here.', ''],
    }),
  ];
}

const ANY_EVENT = { action: null, subject: null, since: null, until: null };

function clientOf({ clientId }: Visit): string {
  if (clientId === null) throw new Error('the portal is of a client');
  return clientId;
}

const idOf = (row?: UndeliveredNotification): string => row?.headers['X-Webhook-Id'] ?? '';
