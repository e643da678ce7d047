import type { EntityManager } from 'typeorm';
import type { ClientAccount } from '../../../account/client-account.js';
import type { AuditLog } from '../../../audit/audit.module.js';
import { Consent } from '../../../clients/authorization.entity.js';
import { findClient } from '../../../clients/clients.service.js';
import { Client } from '../../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../../database/data-source.js';
import { namesOf } from '../../../database/statements/names.js';
import { orderKey, timeOfId } from '../../../values/identifier.js';
import { Member } from '../../../members/member.entity.js';
import { entityOf, runSql } from '../../../database/statements/statement.js';
import { MovieOrder } from '../../../orders/movie-order.entity.js';
import { ACKNOWLEDGED, ALARMING, FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import type { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { webhookHealth } from '../../../webhooks/webhook-health.js';
import { countPending, findDeliveries } from '../../../webhooks/webhook-queries.js';
import { Webhook } from '../../../webhooks/webhook.entity.js';
import { isSearchable } from '../../../http/pages/fields.js';
import { type Part, partOf } from '../../../http/pages/list.js';
import type { PageBase } from '../../../http/pages/site.js';

/** Clients whose id is `query` or whose name contains it; all clients if it is empty. They are few, so names need no index. */
export function clientsFound(manager: EntityManager, query: string | null) {
  const found = manager.createQueryBuilder(Client, 'client');
  if (!query) return found;
  return found.where('(client.id = :query OR POSITION(LOWER(:query) IN LOWER(client.name)) > 0)', { query });
}

/** The clients with exactly this name. */
export const clientsNamed = (manager: EntityManager, name: string) =>
  manager.createQueryBuilder(Client, 'client').where('LOWER(client.name) = LOWER(:name)', { name });

/** The client with this id, otherwise those with exactly this name, otherwise those whose name contains the text. */
export async function searchClients(manager: EntityManager, text: string, most: number) {
  if (!isSearchable(text)) return [];
  const known = await findClient(manager, text);
  if (known) return [known];
  const exact = await clientsNamed(manager, text).orderBy('client.id').limit(most).getMany();
  return exact.length > 0 ? exact : (await clientsByName(manager, text, { after: null, most })).rows;
}

/** A part of the clients of {@link clientsFound}, sorted by name. `after`: it begins behind the client with this id. */
async function clientsByName(manager: EntityManager, query: string | null, { after, most }: Omit<Part, 'order'>) {
  const found = clientsFound(manager, query)
    .orderBy('LOWER(client.name)')
    .addOrderBy('client.id')
    .limit(most + 1);
  const last = after === null ? null : await findClient(manager, after);
  if (last)
    found.andWhere(
      '(LOWER(client.name) > LOWER(:name) OR (LOWER(client.name) = LOWER(:name) AND client.id > :id))',
      last,
    );
  return partOf(await found.getMany(), most, ({ id }) => id);
}

/** A part of the list of clients: since when a receiver of each fails, and when its newest notification was made. */
export async function listClients(manager: EntityManager, query: string | null, part: Part) {
  const { rows: clients, next } = await clientsByName(manager, query, part);
  if (clients.length === 0) return { rows: [], next };
  const [client, webhook, host] = [Client, Webhook, FailingHost].map((entity) => tableOf(manager, entity));
  const { rows } = await runSql(
    manager,
    (parameter) => `
      SELECT c.id, (
        SELECT w.id FROM ${webhook} w ${dialectOf(manager).byIndex('usher_webhook_client')}
        WHERE w.client_id = c.id ORDER BY w.client_id DESC, w.id DESC LIMIT 1) AS last_id, (
        SELECT MIN(f.failing_since) FROM ${host} f
        WHERE f.client_id = c.id AND f.recovered_at IS NULL AND f.alarm_ended_at IS NULL) AS failing_since
      FROM ${client} c WHERE c.id IN (${clients.map(({ id }) => parameter(id)).join(', ')})`,
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  const listed = clients.map((client) => {
    const { last_id: last = null, failing_since: since = null } = byId.get(client.id) ?? {};
    return {
      ...client,
      failingSince: since === null ? null : Number(since),
      lastAt: last === null ? null : timeOfId(String(last)),
    };
  });
  return { rows: listed, next };
}

const RECENT = 10;
const MAX_MEMBERS = 50;
/** How many pending notifications are counted at most where their number has no limit. */
export const MAX_PENDING = 10_000;

/** All that the page of a client shows. */
export type ClientDetails = Awaited<ReturnType<ReturnType<typeof clientDetails>['read']>>;

/** Each query reads a bounded part of an index. */
export function clientDetails(
  account: ClientAccount,
  list: WebhookList,
  audit: AuditLog,
  { dataSource, manager, options }: PageBase,
) {
  /** The members with the newest consents. Members of the embedding application's own have no name here. */
  async function membersOf(clientId: string) {
    const found = await manager.find(Consent, { where: { clientId }, order: { givenAt: 'DESC' }, take: MAX_MEMBERS });
    const names = await namesOf(
      manager,
      Member,
      found.map(({ ownerId }) => ownerId),
    );
    return found.map((consent) => ({ ...consent, name: names.get(consent.ownerId) }));
  }

  /**
   * The newest orders of a client, with the states of their notifications, by the index of the order list: those without a
   * position yet, and those with the last positions.
   */
  async function ordersOf(clientId: string, most: number) {
    const { byIndex, orderBy } = dialectOf(manager);
    const { rows } = await runSql(manager, (parameter) => {
      const part = (condition: string, order: string[]) => `
        (SELECT * FROM ${tableOf(manager, MovieOrder)} ${byIndex('usher_movie_order_list')}
        WHERE client_id = ${parameter(clientId)} AND list_position IS ${condition}
        ORDER BY ${order.join(', ')} LIMIT ${most})`;
      const unplaced = part('NULL', orderBy(['list_position DESC'], ['id DESC']));
      return `${unplaced} UNION ALL ${part('NOT NULL', ['list_position DESC', 'id DESC'])}`;
    });
    const orders = rows
      .map((row) => entityOf(dataSource, MovieOrder, row))
      .sort((left, right) => right.createdAt - left.createdAt)
      .slice(0, most)
      .map((order) => ({ ...order, key: orderKey(order.id) }));
    const keys = orders.map(({ key }) => key);
    const deliveries = await findDeliveries(dataSource, clientId, keys);
    return orders.map((order) => ({ ...order, delivery: deliveries.get(order.key) ?? null }));
  }

  /** Throws 404 if there is no client with this id. */
  async function read(id: string) {
    const failures = { subject: `client:${id}`, action: 'client.authentication-failed', limit: RECENT } as const;
    const [known, failing, health, { webhooks }, orders, members, urlChanges, signInFailures, pending] =
      await Promise.all([
        account.read(id),
        manager.findBy(
          FailingHost,
          [ALARMING, ACKNOWLEDGED].map((which) => ({ ...which, clientId: id })),
        ),
        webhookHealth(dataSource, id),
        list.page({ ...ANY_WEBHOOK, clientId: id }, null, RECENT),
        ordersOf(id, RECENT),
        membersOf(id),
        audit.list({ ...failures, action: 'client.notify-url-set' }),
        audit.list(failures),
        countPending(dataSource, id, options.pendingWebhookLimit ?? MAX_PENDING),
      ]);
    return {
      ...known,
      failing,
      health,
      webhooks,
      orders,
      members,
      urlChanges,
      signInFailures,
      pending,
      limits: options,
    };
  }

  return { read, ordersOf };
}
