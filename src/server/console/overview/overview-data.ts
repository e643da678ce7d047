import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, MoreThan } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { runSql } from '../../../database/statements/statement.js';
import { databaseNow } from '../../../database/sql.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { DeliveryFigures } from '../../../webhooks/figures/delivery-figures.js';
import { clientNames } from '../../../webhooks/search/webhook-list.js';
import { Webhook } from '../../../webhooks/webhook.entity.js';
import { beginOf, DAY_MS, HOUR_MS, LAST_DAY, LAST_HOUR, LAST_WEEK, pointsOf } from '../figures/figures.js';
import { CachedQuery } from '../../health/cached-query.js';

/** A client, without its name if it was erased. */
export interface NamedClient {
  id: string;
  name: string | undefined;
}

/** A host that accepts no notification of a client at present. */
export type FailingReceiver = FailingHost & { client: NamedClient };

/** Pending notifications that are counted by client; each costs a look at its row. */
export const MAX_PENDING = 10_000;
const MAX_CLIENTS = 10;
/** One more than are shown, so that the page knows of others. */
export const MAX_FAILING = 11;

/** What the overview shows of the database. Each query is cached, and null while the database does not answer. */
@Injectable()
export class OverviewData {
  readonly queries = {
    ranges: new CachedQuery(() => this.ranges()),
    pending: new CachedQuery(() => this.pending()),
    failing: new CachedQuery(() => this.failing()),
    hasClients: new CachedQuery(() => this.manager.exists(Client)),
  };
  private readonly manager: EntityManager;

  constructor(
    @Inject(USHER_DATA_SOURCE) { manager }: DataSource,
    private readonly figures: DeliveryFigures,
  ) {
    this.manager = manager;
  }

  /** The deliveries of the last hour, day and week, on the database's clock. */
  private async ranges() {
    const now = await databaseNow(this.manager);
    const [ofHour, ofWeek] = await Promise.all([
      this.figures.ofAll(beginOf(LAST_HOUR, now), LAST_HOUR.periodMs),
      this.figures.ofAll(beginOf(LAST_WEEK, now), HOUR_MS),
    ]);
    return [
      { range: LAST_HOUR, points: pointsOf(LAST_HOUR, now, ofHour) },
      ...[LAST_DAY, LAST_WEEK].map((range) => ({ range, points: pointsOf(range, now, ofWeek, HOUR_MS) })),
    ];
  }

  /** How many notifications of clients are pending. `isCapped`: there are more of them than were counted. */
  private async pending() {
    const { rows } = await runSql(
      this.manager,
      () => `
        SELECT client_id, COUNT(*) AS pending FROM (
          SELECT client_id FROM ${tableOf(this.manager, Webhook)} WHERE status = 'PENDING'
          ORDER BY next_attempt_at LIMIT ${MAX_PENDING}) AS first_due
        GROUP BY client_id ORDER BY pending DESC, client_id`,
    );
    const all = rows.map((row) => ({ clientId: String(row.client_id), pending: Number(row.pending) }));
    const counted = all.reduce((sum, { pending }) => sum + pending, 0);
    return { clients: await withClients(this.manager, all.slice(0, MAX_CLIENTS)), isCapped: counted >= MAX_PENDING };
  }

  /** Those that failed within a day: a host that nothing is sent to any more is not a fault of today. */
  private async failing(): Promise<FailingReceiver[]> {
    const rows = await this.manager.find(FailingHost, {
      where: { lastFailedAt: MoreThan((await databaseNow(this.manager)) - DAY_MS), recoveredAt: IsNull() },
      order: { failingSince: 'ASC' },
      take: MAX_FAILING,
    });
    return withClients(this.manager, rows);
  }
}

/** The same rows with their clients. */
export async function withClients<Row extends { clientId: string }>(
  manager: EntityManager,
  rows: Row[],
): Promise<(Row & { client: NamedClient })[]> {
  const names = await clientNames(
    manager,
    rows.map(({ clientId }) => clientId),
  );
  return rows.map((row) => ({ ...row, client: { id: row.clientId, name: names.get(row.clientId) } }));
}
