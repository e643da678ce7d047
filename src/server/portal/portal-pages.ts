import { type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { AuditLog } from '../../audit/audit.module.js';
import { html } from '../../http/html.js';
import { inputField } from '../../http/pages/fields.js';
import { postForm, viewerOf } from '../../http/pages/form.js';
import { listPage } from '../../http/pages/list.js';
import { notice, table } from '../../http/pages/parts.js';
import type { Page, Visit } from '../../http/pages/site.js';
import { OrderTotals } from '../../orders/list/order-totals.js';
import { OrdersModule } from '../../orders/orders.module.js';
import { PORTAL_PATH, PortalModule } from '../../portal/portal.js';
import { type UndeliveredNotification, UndeliveredWebhooks } from '../../webhooks/undelivered/undelivered-webhooks.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { UsedForms } from '../console/access/used-forms.js';
import { actionWords, cut } from '../console/audit/audit-pages.js';
import { AuditSearch, type ListedEvent } from '../console/audit/audit-search.js';
import { ClientPages } from '../console/clients/client-pages.js';
import { ClientDetailsReader } from '../console/clients/client-details.js';
import { notifications, orderColumns, summary } from '../console/clients/client-page.js';
import { contentOf, Site } from '../console/frame/frame.js';
import { webhookLink } from '../console/frame/links.js';
import { mountPages } from '../console/frame/pages.js';
import { shellOf } from '../console/frame/shell.js';
import { NotificationsPages } from '../console/notifications/notifications-pages.js';
import { WebhookPages } from '../console/notifications/webhook-pages.js';
import { OpsModule } from '../console/ops.module.js';
import { healthTable } from '../console/receivers/receiver-parts.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { OVERVIEW_PATH, PortalEntry, SIGN_OUT_PATH } from './portal-entry.js';

const MAX_ORDERS = 100;

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
        return { title: 'Overview', body, isLive: true };
      },
    },
    listPage<UndeliveredNotification, object>({
      path: `${PORTAL_PATH}/missed`,
      title: 'Missed',
      noun: 'notification',
      fields: {},
      hint: () =>
        html`<p class="hint">
          Notifications that are pending or have failed, and were not delivered otherwise. The CSV file has all of them.
        </p>`,
      read: async (_, { after, most }, visit) => {
        const rows: UndeliveredNotification[] = [];
        const query = { limit: most, cursor: after ?? undefined };
        for await (const page of this.undelivered.pages({ clientId: clientOf(visit), ownerId: null }, query))
          rows.push(...page);
        return { rows, next: rows.length < most ? null : idOf(rows.at(-1)) };
      },
      count: () => Promise.resolve(null),
      columns: {
        Notification: { value: idOf, cell: (row) => webhookLink(idOf(row), PORTAL_PATH) },
        Body: { value: 'body', cell: ({ body }) => html`<code>${body}</code>` },
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
              Currency: 'currencyCode',
              Completed: { number: 'count' },
              'To pay': { number: ({ payableAmount }) => (Number(payableAmount) / 100).toFixed(2) },
            },
            currencies,
            'No order was completed on this day.',
          )}
          <h2>The newest orders</h2>
          ${table(orderColumns(PORTAL_PATH), await this.details.orders(clientId, MAX_ORDERS), 'Your orders will be here.')}`;
        return { title: 'Orders', body };
      },
    },
    listPage<ListedEvent, object>({
      path: `${PORTAL_PATH}/record`,
      title: 'Record',
      noun: 'event',
      fields: {},
      hint: () => html`<p class="hint">Who signed in here, and what was done here or by the API.</p>`,
      read: async (_, part, { actor }) => {
        const { rows, ...rest } = await this.audit.find({ actor: actor.name }, part);
        return { rows: await this.audit.events(rows), ...rest };
      },
      count: () => Promise.resolve(null),
      columns: {
        When: { time: 'createdAt' },
        'Did what': { value: 'action', cell: ({ action }) => actionWords(action) },
        'To what': 'subject',
        From: 'address',
      },
      nothing: ['Sign-ins and changes will be listed here.', ''],
      cut,
    }),
  ];
}

/** In the portal every visit after the sign-in has a client. */
const clientOf = ({ clientId }: Visit): string => clientId ?? '';

const idOf = (row?: UndeliveredNotification): string => row?.headers['X-Webhook-Id'] ?? '';

const SECTIONS = ['Overview', 'Notifications', 'Missed', 'Orders', 'Settings', 'Record'];

export function mountPortal(app: INestApplicationContext, server: FastifyInstance): void {
  const { brandName, publicUrl } = app.get<Config>(SERVER_CONFIG);
  const base = new URL(publicUrl ?? 'http://host').pathname.replace(/\/$/, '');
  const site: Site = new Site(
    PORTAL_PATH,
    (request, page) =>
      shellOf({
        brand: site.brand,
        bar: html`<div class="u-who">
          ${viewerOf(request)?.name} ${postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
        </div>`,
        sections: SECTIONS.map((title) => {
          const section = title.toLowerCase();
          return { address: `${PORTAL_PATH}/${section}`, title, isCurrent: section === page.section };
        }),
        content: contentOf(page),
      }),
    brandName,
    base,
  );
  const entry = app.get(PortalEntry);
  const pages = [
    ...entry.pages,
    ...app.get(PortalPages).pages,
    ...app.get(NotificationsPages).at(PORTAL_PATH),
    app.get(WebhookPages).at(PORTAL_PATH),
    app.get(ClientPages).settings,
  ];
  server.register((scope, _, done) => {
    scope.addHook('onRequest', (request, reply, next) => {
      entry.check(site, request, reply).then((isAccepted) => isAccepted && next(), next);
    });
    mountPages(scope, site, pages, app.get(UsedForms), app.get(AuditLog));
    done();
  });
}

@Module({ imports: [OpsModule, PortalModule, OrdersModule, WebhookModule], providers: [PortalEntry, PortalPages] })
export class PortalPagesModule {}
