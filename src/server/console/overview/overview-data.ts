import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, MoreThan } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { runSql } from '../../../database/statements/statement.js';
import { databaseNow } from '../../../database/sql.js';
import { namesOf } from '../../../database/statements/names.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { DeliveryFigures } from '../../../webhooks/figures/delivery-figures.js';
import { WebhookSearch } from '../../../webhooks/search/webhook-search.js';
import { DeliveryPause, Webhook } from '../../../webhooks/webhook.entity.js';
import { CachedQueries, CachedQuery } from '../../health/cached-query.js';
import { kindAndId } from '../audit/audit-search.js';
import { beginOf, DAY_MS, inHours, pointsOf, type Range } from '../figures/figures.js';

/** A client, without its name if it was erased. */
export interface NamedClient {
  id: string;
  name: string | undefined;
}

/** A client that has lost notifications in a range, or whose receivers fail at present. */
export type FailingClient = Awaited<ReturnType<OverviewData['readLosses']>>['clients'][number];

/** Pending notifications that are counted by client; each costs a look at its row. */
export const MAX_PENDING = 10_000;
const MAX_CLIENTS = 10;
/** Lost notifications are counted for this many clients: those with the most that ended FAILED. */
const MAX_COUNTED = 50;
const MAX_HOSTS = 500;
const MAX_PAUSES = 20;
const WEEK_MS = 7 * DAY_MS;

export const isAlarming = ({ alarmEndedAt }: FailingHost) => alarmEndedAt === null;

/** What the overview shows of the database. Each query is cached, and null while the database does not answer. */
@Injectable()
export class OverviewData {
  /** The clients with the most pending notifications. `isCapped`: there may be more than were counted. */
  private readonly pending = new CachedQuery(async () => {
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
  });
  /** The first pauses that hold deliveries, with the names of their clients. */
  private readonly pauses = new CachedQuery(async () => {
    const where = { resumedAt: IsNull() };
    const found = await this.manager.find(DeliveryPause, { where, order: { since: 'ASC' }, take: MAX_PAUSES });
    return withClients(
      this.manager,
      found.map((pause) => ({ ...pause, clientId: kindAndId(pause.subject)[1] })),
    );
  });
  private readonly clientCount = new CachedQuery(() => this.manager.count(Client));
  /** The deliveries of a range, on the database's clock. */
  private readonly points = new CachedQueries(async (range: Range) => {
    const now = await databaseNow(this.manager);
    return pointsOf(range, now, await this.figures.ofAll(beginOf(range, now), range.periodMs));
  });
  private readonly losses = new CachedQueries((range: Range) => this.readLosses(range));
  readonly manager: EntityManager;

  constructor(
    @Inject(USHER_DATA_SOURCE) { manager }: DataSource,
    private readonly figures: DeliveryFigures,
    private readonly search: WebhookSearch,
  ) {
    this.manager = manager;
  }

  queries(range: Range) {
    const { pending, pauses, clientCount } = this;
    return { pending, pauses, clientCount, points: this.points.of(range), losses: this.losses.of(range) };
  }

  /** After an alarm was acknowledged, or deliveries were paused or resumed. */
  async changed() {
    this.losses.clear();
    await this.pauses.clear();
  }

  /** The clients that lost the most first. Ended notifications are counted by whole hours. */
  private async readLosses(range: Range) {
    const now = await databaseNow(this.manager);
    const since = beginOf(range, now);
    const hour = beginOf(inHours(range), now);
    const ended = await this.figures.endedFailed(hour, now, MAX_COUNTED);
    // A host without a failure in the last day is not a current problem.
    const failing = await this.manager.find(FailingHost, {
      where: { lastFailedAt: MoreThan(now - DAY_MS), recoveredAt: IsNull() },
      order: { failingSince: 'ASC' },
      take: MAX_HOSTS,
    });
    const counted = [...ended.keys()];
    const ids = [...new Set([...counted, ...failing.map(({ clientId }) => clientId)])];
    const before =
      this.figures.isKept(hour - WEEK_MS, now) && (await this.figures.endedFailed(hour - WEEK_MS, now - WEEK_MS, ids));
    const lost = await this.search.lost(ended, since);
    const paused = await this.manager.findBy(DeliveryPause, {
      subject: In(ids.map((id) => `client:${id}` as const)),
      resumedAt: IsNull(),
    });
    const rows = ids.map((clientId) => {
      const hosts = failing.filter((host) => host.clientId === clientId);
      return {
        clientId,
        range: range.key,
        since,
        until: now,
        /** FAILED notifications that were not sent again. `isCapped`: further ones were not looked at. */
        ...(lost.get(clientId) ?? { lost: 0, isCapped: counted.length === MAX_COUNTED && !ended.has(clientId) }),
        /** How many ended FAILED, and how many a week before if those figures are kept. */
        ended: ended.get(clientId) ?? 0,
        before: before ? (before.get(clientId) ?? 0) : undefined,
        hosts,
        alarming: hosts.filter(isAlarming).map(({ host }) => host),
        isPaused: paused.some(({ subject }) => subject === `client:${clientId}`),
      };
    });
    const shown = rows.filter(({ lost, isCapped, alarming }) => lost > 0 || isCapped || alarming.length > 0);
    const clients = await withClients(this.manager, shown);
    return { clients: clients.sort((one, other) => other.lost - one.lost || other.ended - one.ended), since };
  }
}

/** The rows with the names of their clients. */
export async function withClients<Row extends { clientId: string }>(manager: EntityManager, rows: Row[]) {
  const names = await namesOf(
    manager,
    Client,
    rows.map(({ clientId }) => clientId),
  );
  return rows.map((row) => ({ ...row, client: { id: row.clientId, name: names.get(row.clientId) } }));
}
