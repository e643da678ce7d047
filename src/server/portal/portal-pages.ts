import { type INestApplicationContext, Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { Row } from '../../database/statements/statement.js';
import { ClientAccount } from '../../account/client-account.js';
import { AuditLog } from '../../audit/audit.module.js';
import { html } from '../../http/html.js';
import { inputField } from '../../http/pages/fields.js';
import { listPage, partOf } from '../../http/pages/list.js';
import { notice, table } from '../../http/pages/parts.js';
import { faultText, pagesWith } from '../../http/pages/site.js';
import { Problem } from '../../http/problem.js';
import { OrderTotals } from '../../orders/list/order-totals.js';
import { shownAmount } from '../../orders/movie-order.js';
import { OrdersModule } from '../../orders/orders.module.js';
import { PORTAL_PATH } from '../../portal/portal.js';
import { WebhookList } from '../../webhooks/search/webhook-list.js';
import { undeliveredRows } from '../../webhooks/undelivered/undelivered-webhooks.js';
import { auditPages } from '../console/audit/audit-pages.js';
import { clientPages } from '../console/clients/client-pages.js';
import { clientDetails } from '../console/clients/clients-data.js';
import { notifications, ORDER_COLUMNS, summary } from '../console/clients/client-page.js';
import { webhookLink } from '../console/frame/links.js';
import { mountSite } from '../console/frame/pages.js';
import { notificationsPages } from '../console/notifications/notifications-pages.js';
import { webhookPages } from '../console/notifications/webhook-pages.js';
import { OpsModule } from '../console/ops.module.js';
import { healthTable } from '../console/receivers/receiver-parts.js';
import { OVERVIEW_PATH, PortalEntry } from './portal-entry.js';

const MAX_ORDERS = 100;

const portalPages = pagesWith(
  [ClientAccount, WebhookList, AuditLog, OrderTotals],
  (account, list, audit, totals, base) => {
    const reader = clientDetails(account, list, audit, base);

    return [
      {
        path: OVERVIEW_PATH,
        show: async (visit) => {
          const details = await reader.read(visit.id);
          const { deliveriesPaused: paused } = details.account;
          const body = html`${paused && notice('warning', html`Your operator has paused deliveries: ${paused.reason}`)}
            ${summary(visit, details)}
            <p class="actions"><a class="button" href="${PORTAL_PATH}/settings#notify-url">Change the Notify URL</a></p>
            <h2>Receivers</h2>
            ${healthTable(visit, details.health)}
            <h2>Notifications</h2>
            ${notifications(visit, details)}`;
          return { title: 'Overview', body, isLive: true };
        },
      },
      listPage<Row, object>({
        path: `${PORTAL_PATH}/missed`,
        title: 'Missed',
        noun: 'notification',
        fields: {},
        hint: () =>
          html`<p class="hint">
            Notifications that are pending or have failed, and were not delivered otherwise. The CSV file has all of
            them.
          </p>`,
        read: async (_, { after, most }, { id: clientId }) => {
          const rows: Row[] = [];
          const query = { limit: most + 1, cursor: after ?? undefined };
          for await (const page of undeliveredRows(base.dataSource, { clientId, ownerId: null }, query))
            rows.push(...page);
          return partOf(rows, most, ({ id }) => String(id));
        },
        count: null,
        columns: {
          Notification: { value: ({ id }) => String(id), cell: ({ id }) => webhookLink(String(id)) },
          Body: { value: ({ body }) => String(body), cell: ({ body }) => html`<code>${String(body)}</code>` },
        },
        nothing: ['Nothing was missed.', ''],
      }),
      {
        path: `${PORTAL_PATH}/orders`,
        show: async (visit) => {
          const { id: clientId, query } = visit;
          const { day = new Date().toISOString().slice(0, 10) } = query;
          const sums = await totals.of({ clientId, ownerId: null }, { day }).catch(invalidDay);
          const fault = 'fault' in sums ? sums.fault : undefined;
          const body = html`<form class="filter" method="get" action="${visit.path}">
              ${inputField({ name: 'day', label: 'Day (UTC)', value: day, fault })} <button>Show the totals</button>
            </form>
            ${
              sums.currencies &&
              table(
                {
                  Currency: 'currencyCode',
                  Completed: { number: 'count' },
                  'To pay': { number: ({ payableAmount, currencyCode }) => shownAmount(payableAmount, currencyCode) },
                },
                sums.currencies,
                'No order was completed on this day.',
              )
            }
            <h2>The newest orders</h2>
            ${table(ORDER_COLUMNS, await reader.ordersOf(clientId, MAX_ORDERS), 'Your orders will be here.')}`;
          return { title: 'Orders', body, ...(fault && { status: 400 }) };
        },
      },
    ];
  },
);

/** The page then has the form with the fault, and the newest orders. */
function invalidDay(error: unknown) {
  if (error instanceof Problem && error.getStatus() === 400) return { currencies: null, fault: faultText(error) };
  throw error;
}

const PAGES = [portalPages, notificationsPages, webhookPages, clientPages, auditPages];

export function mountPortal(app: INestApplicationContext, server: FastifyInstance): void {
  const entry = app.get(PortalEntry);
  const pages = PAGES.flatMap((pages) => pages(app));
  mountSite(app, server, entry.site, [...entry.pages, ...pages], (request, reply) => entry.check(request, reply));
}

@Module({ imports: [OpsModule, OrdersModule], providers: [PortalEntry] })
export class PortalPagesModule {}
