import { html } from '../../../http/html.js';
import { isSearchable } from '../../../http/pages/fields.js';
import { emptyState, shortId } from '../../../http/pages/parts.js';
import { pagesWith } from '../../../http/pages/site.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import { MovieOrder } from '../../../orders/movie-order.entity.js';
import { ID, orderIdOf, orderKey } from '../../../values/identifier.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import { searchClients } from '../clients/clients-data.js';
import { rangeOf } from '../figures/figures.js';
import { clientLink, clientPath, memberLink, operatorLink, orderLink, receiverLink } from '../frame/links.js';
import { membersNamed } from '../members/members-pages.js';
import { notificationTable } from '../notifications/notification-list.js';
import { ReceiversData } from '../receivers/receivers-data.js';

const MAX_FOUND = 50;

/** The search field of all pages. A notification, or a client named exactly, is opened at once if nothing else is found. */
export const searchPages = pagesWith(
  [WebhookList, OperatorsService, ReceiversData],
  (webhookList, operatorsService, receivers, { manager }) => {
    /** The webhook with this id, or those of the order with this key. */
    async function webhooksFor(query: string) {
      if (!ReferenceId.safeParse(query).success) return [];
      const byId = ID.test(query) ? await webhookList.byId(query) : [];
      if (byId.length > 0) return byId;
      return (await webhookList.page({ ...ANY_WEBHOOK, referenceId: query }, null, MAX_FOUND)).webhooks;
    }

    /**
     * The order with this key, unless a notification stands for it, those of this booking, and those that this transaction
     * completed. Each has an index of its own.
     */
    async function ordersFor(query: string, isNotified: boolean) {
      const id = isNotified ? '' : (orderIdOf(query) ?? '');
      const found = [{ id }, { bookingId: query }, { transactionId: query }].map((where) =>
        manager.find(MovieOrder, { select: { id: true, bookingId: true }, where, take: MAX_FOUND }),
      );
      const orders = (await Promise.all(found)).flat();
      return orders.filter(({ id }, at) => orders.findIndex((other) => other.id === id) === at);
    }

    return [
      {
        path: '/ops/search',
        show: async (visit) => {
          const { q: query = '' } = visit.query;
          const view = { title: 'Found', query };
          if (query === '' || !isSearchable(query)) return { ...view, body: emptyState(NOTHING) };
          const webhooks = await webhooksFor(query);
          const [clients, orders, members, operators, hosts] = await Promise.all([
            searchClients(manager, query, MAX_FOUND),
            ordersFor(query, webhooks.length > 0),
            membersNamed(manager, query).orderBy('member.name').limit(MAX_FOUND).getMany(),
            operatorsService.list(),
            receivers.lists.get(rangeOf({ range: '7d' })),
          ]);
          const text = query.toLowerCase();
          const lists = {
            Clients: clients.map((client) => html`${clientLink(client)} ${shortId(client.id)}`),
            Orders: orders.map(
              ({ id, bookingId }) =>
                html`${orderLink(orderKey(id))} ${bookingId ? `booking ${bookingId}` : 'not completed'}`,
            ),
            Receivers: (hosts ?? []).filter(({ host }) => host.includes(text)).map(({ host }) => receiverLink(host)),
            Members: members.map(memberLink),
            Operators: operators
              .filter(({ name }) => name.toLowerCase().startsWith(text))
              .map(({ name }) => operatorLink(name)),
          };
          const count = webhooks.length + Object.values(lists).flat().length;
          const [[client], [first]] = [clients, webhooks];
          if (count === 1 && client && [client.id.toLowerCase(), client.name.toLowerCase()].includes(text))
            return clientPath(client.id);
          if (count === 1 && first) return `/ops/webhooks/${first.webhook.id}`;
          const body = html`${count === 0 && emptyState(NOTHING)}
          ${Object.entries(lists).map(
            ([name, found]) =>
              found.length > 0 &&
              html`<h2>${name}</h2>
                <ul>
                  ${found.map((one) => html`<li>${one}</li>`)}
                </ul>`,
          )}
          ${
            webhooks.length > 0 &&
            html`<h2>Notifications</h2>
              ${notificationTable(visit, webhooks)}`
          }`;
          return { ...view, body };
        },
      },
    ];
  },
);

const NOTHING =
  'Nothing was found. Search for the id of a notification, order, booking or transaction, for a host, or for a name.';
