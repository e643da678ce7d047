import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, MoreThan } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { databaseNow } from '../../../database/sql.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { DeliveryFigures, type Sums } from '../../../webhooks/figures/delivery-figures.js';
import { clientNames } from '../../../webhooks/search/webhook-list.js';
import { Webhook } from '../../../webhooks/webhook.entity.js';
import { beginOf, FIVE_MINUTES_MS, HOUR_MS, LAST_HOUR, LAST_WEEK } from '../figures/periods.js';
import { CachedQuery } from '../../health/cached-query.js';

export interface NamedClient {
  id: string;
  name: string;
}

export interface Deliveries {
  /** On the database's clock. */
  now: number;
  /** By the beginning of five minutes, and of an hour. */
  ofHour: Map<number, Sums>;
  ofWeek: Map<number, Sums>;
}

export interface Pending {
  clients: { client: NamedClient; count: number }[];
  /** True if there are more pending notifications than were counted. */
  isCapped: boolean;
}

/** A host that accepts no notification of a client at present. */
export type FailingReceiver = FailingHost & { client: NamedClient };

const DAY_MS = 24 * HOUR_MS;
/** Pending notifications that are counted by client; each costs a look at its row. */
export const MAX_PENDING = 10_000;
const MAX_CLIENTS = 10;
/** One more than are shown, so that the page knows of others. */
export const MAX_FAILING = 11;

/** What the overview shows of the database. Each query is cached, and null while the database does not answer. */
@Injectable()
export class OverviewData {
  readonly deliveries: CachedQuery<Deliveries>;
  readonly pending: CachedQuery<Pending>;
  readonly failing: CachedQuery<FailingReceiver[]>;
  readonly hasClients: CachedQuery<{ value: boolean }>;

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource, figures: DeliveryFigures) {
    const { manager } = dataSource;
    this.deliveries = new CachedQuery(async () => {
      const now = await databaseNow(manager);
      const ofHour = figures.ofAll(beginOf(LAST_HOUR, now), FIVE_MINUTES_MS);
      const ofWeek = figures.ofAll(beginOf(LAST_WEEK, now), HOUR_MS);
      return { now, ofHour: await ofHour, ofWeek: await ofWeek };
    });
    this.pending = new CachedQuery(() => pendingByClient(manager));
    this.failing = new CachedQuery(() => failingSince(manager, DAY_MS));
    this.hasClients = new CachedQuery(async () => ({ value: (await manager.find(Client, { take: 1 })).length > 0 }));
  }
}

async function pendingByClient(manager: EntityManager): Promise<Pending> {
  const rows = await manager.sql<{ client_id: string; pending: string }[]>`
    SELECT client_id, COUNT(*) AS pending FROM (
      SELECT client_id FROM ${() => tableOf(manager.dataSource, Webhook)} WHERE status = 'PENDING'
      ORDER BY next_attempt_at LIMIT ${() => String(MAX_PENDING)}) AS first_due
    GROUP BY client_id ORDER BY pending DESC, client_id`;
  const counted = rows.reduce((sum, { pending }) => sum + Number(pending), 0);
  const top = rows.slice(0, MAX_CLIENTS);
  const named = await namedClients(
    manager,
    top.map(({ client_id }) => client_id),
  );
  const clients = top.map(({ client_id, pending }) => ({ client: named(client_id), count: Number(pending) }));
  return { clients, isCapped: counted >= MAX_PENDING };
}

/** Those that failed within `ms`: a host that nothing is sent to any more is not a fault of today. */
async function failingSince(manager: EntityManager, ms: number): Promise<FailingReceiver[]> {
  const rows = await manager.find(FailingHost, {
    where: { lastFailedAt: MoreThan((await databaseNow(manager)) - ms), recoveredAt: IsNull() },
    order: { failingSince: 'ASC' },
    take: MAX_FAILING,
  });
  const named = await namedClients(
    manager,
    rows.map(({ clientId }) => clientId),
  );
  return rows.map((row) => ({ ...row, client: named(row.clientId) }));
}

/** A function from the ids to the clients. One that was erased has an empty name. */
export async function namedClients(manager: EntityManager, ids: string[]): Promise<(id: string) => NamedClient> {
  const names = await clientNames(manager, ids);
  return (id) => ({ id, name: names.get(id) ?? '' });
}
