import { html } from '../../../http/html.js';
import { hiddenFields, MOMENT_HINT } from '../../../http/pages/fields.js';
import { listPage, type Part } from '../../../http/pages/list.js';
import { pagesWith, type Visit } from '../../../http/pages/site.js';
import { countRequest } from '../../../http/minute-limit.js';
import { badRequest, Problem } from '../../../http/problem.js';
import { Limits } from '../../../limits/limits.module.js';
import { ID } from '../../../values/identifier.js';
import { ANY_WEBHOOK, type WebhookCriteria } from '../../../webhooks/search/webhook-criteria.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { WebhookSearch } from '../../../webhooks/search/webhook-search.js';
import { PendingLimit } from '../../../webhooks/pending-limit.js';
import { RESEND_LIMIT } from '../../../webhooks/undelivered/undelivered.controller.js';
import { unknownResend, WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { CachedQueries, SHORT_TIMEOUT_MS } from '../../health/cached-query.js';
import { clientLink } from '../frame/links.js';
import { findClient } from '../../../clients/clients.service.js';
import {
  FILTER_FIELDS,
  isOpen,
  listHref,
  notificationColumns,
  type NotificationFilter,
  readNotificationFilter,
  resendPage,
  selectedIds,
  SELECTION_FORM,
  STATUS_FILTERS,
} from './notification-list.js';

/** The pages in the console, and in the portal of clients, where each sees its own notifications. */
export const notificationsPages = pagesWith(
  [WebhookList, WebhookSearch, WebhookResends, PendingLimit, Limits],
  (webhooks, search, resends, pending, limits, { manager }) => {
    const counts = new CachedQueries((criteria: WebhookCriteria) => search.count(criteria), SHORT_TIMEOUT_MS);

    /** A client sees only the requests that it made itself. */
    async function ownResend({ id, clientId, actor }: Visit) {
      const resend = await resends.get(id);
      if (clientId !== null && resend.actor !== actor.name) throw unknownResend(id);
      return resend;
    }

    /** In its portal a client has the limits that the API has for it. */
    async function checkLimits({ clientId }: Visit) {
      if (clientId === null) return;
      countRequest(limits, RESEND_LIMIT, clientId);
      await pending.check(clientId);
    }

    function started(id: string) {
      counts.clear();
      return `~/resends/${id}`;
    }

    /** Only if the list shows nothing but FAILED notifications, so that the operator sees what is sent. */
    async function resendAll(visit: Visit, filter: NotificationFilter) {
      const { criteria } = filter;
      if (criteria?.status !== 'FAILED' || criteria.isSentAgain || criteria.resendId || !visit.mayChange) return null;
      const open = await counts.get({ ...criteria, isSentAgain: false });
      if (open?.count === 0 && !open.isMore) return null;
      const clients = open?.clients === 1 ? 'client' : 'clients';
      const of = visit.clientId === null && open ? ` of ${open.clients} ${clients}` : '';
      const what = open && `${open.isMore ? 'at least ' : ''}${open.count}${of}`;
      return html`<details ${(visit.clientId !== null || visit.refusal?.form === 'resend-all') && html`open`}>
        <summary>Send all that match this filter again${what && `: ${what}`}</summary>
        ${visit.form('resend-all', filter)}
      </details>`;
    }

    return [
      listPage({
        path: '~/notifications',
        title: 'Notifications',
        noun: 'notification',
        fields: FILTER_FIELDS,
        filter: (input, visit) => readNotificationFilter(manager, input, visit.clientId),
        above: (_, filter) => views(filter),
        hint: (filter) => html`${HINT} ${choices(filter)}`,
        read: async ({ criteria }, { after, most, order }) => {
          const before = after !== null && ID.test(after) ? after : null;
          const { webhooks: rows, ...rest } = await webhooks.page(
            criteria ?? ANY_WEBHOOK,
            before,
            most,
            orderOf(order),
          );
          return { rows, ...rest };
        },
        count: ({ criteria }) => counts.get(criteria ?? ANY_WEBHOOK),
        columns: notificationColumns,
        orders: ['Created', 'Ended'],
        nothing: [
          'Every notification that Usher sends will be here. The first one is sent when an order is completed.',
          'No notification matches this filter.',
        ],
        over: resendAll,
        under: (visit, filter, rows) => rows.some(isOpen) && visit.form('resend', filter, SELECTION_FORM),
        isLive: true,
        actions: {
          resend: {
            button: 'Send the selected ones again',
            kind: 'primary',
            // The checkboxes of the table are further fields.
            fields: ({ given }, { query }) => [
              html`<a class="button" href="${listHref({ ...given, ...query, select: 'all' })}"
                >Select all of this page</a
              >`,
              ...hiddenFields(given),
            ],
            answer: async (fields, visit) => {
              const ids = selectedIds(fields);
              if (ids.length === 0) throw badRequest('select at least one notification');
              for (const { webhook } of await webhooks.listed(ids)) visit.checkClient(webhook.clientId);
              await checkLimits(visit);
              return started(await resends.resendChosen(ids, visit));
            },
          },
          'resend-all': {
            button: 'Send all again',
            kind: 'danger',
            hint: 'A notification is left out if its order has a newer, a pending or a delivered one.',
            // A duration such as 24h would select other notifications once the form is sent, so it becomes a time.
            fields: ({ given, criteria }) => hiddenFields({ ...given, ...(criteria && exactly(criteria)) }),
            confirm: 'Yes, send all of them again',
            answer: async (fields, visit) => {
              const { criteria } = await readNotificationFilter(manager, fields, visit.clientId);
              if (criteria === null) throw badRequest('the filter is invalid; correct its fields');
              await checkLimits(visit);
              const { requestId, actor, clientId } = visit;
              return started(await resends.startFor(criteria, { requestId, actor, isLimited: clientId !== null }));
            },
          },
        },
      }),
      {
        path: '~/resends/:id',
        section: 'notifications',
        show: async (visit) => {
          const resend = await ownResend(visit);
          const client = await findClient(manager, resend.clientId ?? '');
          return resendPage(visit, resend, client, resend.webhookIds && (await webhooks.listed(resend.webhookIds)));
        },
        actions: {
          stop: {
            button: 'Stop',
            // The page says so if the request has ended meanwhile.
            run: async (_, visit) => {
              const { id } = await ownResend(visit);
              return resends.stop(id, visit.actor).catch((error: unknown) => {
                if (!(error instanceof Problem) || error.getStatus() !== 409) throw error;
              });
            },
          },
        },
      },
    ];
  },
);

function orderOf(order: Part['order']) {
  if (order?.column === 'Ended') return order.isDescending ? 'ended last' : 'ended first';
  return order && !order.isDescending ? 'oldest' : 'newest';
}

/** The lists that are needed most, as links. */
const views = ({ given }: NotificationFilter) =>
  html`<nav class="actions" aria-label="Lists">
    ${[...STATUS_FILTERS].map(([status, { name }]) => {
      const isCurrent = given.status === status && html`aria-current="page"`;
      return html`<a class="button" href="${listHref({ ...given, status })}" ${isCurrent}>${name}</a>`;
    })}
  </nav>`;

const HINT = html`<p class="hint">
  A time is ${MOMENT_HINT}. The address of this page keeps the filter: save it as a link.
</p>`;

function choices({ given, clients }: NotificationFilter) {
  const [client, another] = clients;
  if (!another) return client && html`<p>Client: ${clientLink(client)}</p>`;
  return html`<section class="card">
    <h2>Which client?</h2>
    <ul>
      ${clients.map(
        ({ id, name }) =>
          html`<li><a href="${listHref({ ...given, client: id })}">${name}</a> <span class="dim">${id}</span></li>`,
      )}
    </ul>
  </section>`;
}

const exactly = ({ since, until, endedSince = null, clientId }: WebhookCriteria) => ({
  since: exact(since),
  until: exact(until),
  endedSince: exact(endedSince),
  client: clientId ?? '',
});

const exact = (ms: number | null) => (ms === null ? '' : new Date(ms).toISOString());
