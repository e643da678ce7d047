import { type DataSource, type EntityManager, In, IsNull, MoreThan } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { tableOf } from '../../../database/data-source.js';
import { runSql } from '../../../database/statements/statement.js';
import { databaseNow } from '../../../database/sql.js';
import { namesOf } from '../../../database/statements/names.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import type { DeliveryFigures } from '../../../webhooks/figures/delivery-figures.js';
import type { WebhookSearch } from '../../../webhooks/search/webhook-search.js';
import { DeliveryPause, Webhook } from '../../../webhooks/webhook.entity.js';
import { type Answers, CachedQueries, CachedQuery } from '../../health/cached-query.js';
import { kindAndId } from '../audit/audit-search.js';
import { beginOf, DAY_MS, inHours, pointsOf, type Range } from '../figures/figures.js';

/** A client, without its name if it was erased. */
export interface NamedClient {
  id: string;
  name: string | undefined;
}

/** A client that has lost notifications in a range, or whose receivers fail at present. */
export type FailingClient = NonNullable<OverviewAnswers['losses']>['clients'][number];

/** Pending notifications that are counted by client; each costs a look at its row. */
export const MAX_PENDING = 10_000;
const MAX_CLIENTS = 10;
/** Lost notifications are counted for this many clients: those with the most that ended FAILED. */
const MAX_COUNTED = 50;
const MAX_HOSTS = 500;
export const MAX_PAUSES = 20;
const WEEK_MS = 7 * DAY_MS;

export const isAlarming = ({ alarmEndedAt }: FailingHost) => alarmEndedAt === null;

export type OverviewAnswers = Answers<ReturnType<ReturnType<typeof overviewData>['queries']>>;

/** What the overview shows of the database. Each query is cached, and null while the database does not answer. */
export function overviewData({ manager }: DataSource, figures: DeliveryFigures, search: WebhookSearch) {
  /** The clients with the most pending notifications. `isCapped`: there may be more than were counted. */
  const pending = new CachedQuery(async () => {
    const { rows } = await runSql(
      manager,
      () => `
        SELECT client_id, COUNT(*) AS pending FROM (
          SELECT client_id FROM ${tableOf(manager, Webhook)} WHERE status = 'PENDING'
          ORDER BY next_attempt_at LIMIT ${MAX_PENDING}) AS first_due
        GROUP BY client_id ORDER BY pending DESC, client_id`,
    );
    const all = rows.map((row) => ({ clientId: String(row.client_id), pending: Number(row.pending) }));
    const counted = all.reduce((sum, { pending }) => sum + pending, 0);
    return { clients: await withClients(manager, all.slice(0, MAX_CLIENTS)), isCapped: counted >= MAX_PENDING };
  });

  /** The first pauses that hold deliveries, with the names of their clients; one more than is shown. */
  const pauses = new CachedQuery(async () => {
    const where = { resumedAt: IsNull() };
    const found = await manager.find(DeliveryPause, { where, order: { since: 'ASC' }, take: MAX_PAUSES + 1 });
    return withClients(
      manager,
      found.map((pause) => ({ ...pause, clientId: kindAndId(pause.subject)[1] })),
    );
  });

  const clientCount = new CachedQuery(() => manager.count(Client));

  /** The deliveries of a range, on the database's clock. */
  const points = new CachedQueries(async (range: Range) => {
    const now = await databaseNow(manager);
    return pointsOf(range, now, await figures.ofAll(beginOf(range, now), range.periodMs));
  });

  /** The clients that lost the most first. Ended notifications are counted by whole hours. */
  const losses = new CachedQueries(async (range: Range) => {
    const now = await databaseNow(manager);
    const since = beginOf(range, now);
    const hour = beginOf(inHours(range), now);
    const ended = await figures.endedFailed(hour, now, MAX_COUNTED);
    // A host without a failure in the last day is not a current problem.
    const failing = await manager.find(FailingHost, {
      where: { lastFailedAt: MoreThan(now - DAY_MS), recoveredAt: IsNull() },
      order: { failingSince: 'ASC' },
      take: MAX_HOSTS,
    });
    const counted = [...ended.keys()];
    const ids = [...new Set([...counted, ...failing.map(({ clientId }) => clientId)])];
    const before =
      figures.isKept(hour - WEEK_MS, now) && (await figures.endedFailed(hour - WEEK_MS, now - WEEK_MS, ids));
    const lost = await search.lost(ended, since);
    const paused = await manager.findBy(DeliveryPause, {
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
    const clients = await withClients(manager, shown);
    clients.sort((one, other) => other.lost - one.lost || other.ended - one.ended);
    return { clients, since, isAnyAcknowledged: failing.some(({ acknowledgedBy }) => acknowledgedBy !== null) };
  });

  return {
    queries: (range: Range) => ({ pending, pauses, clientCount, points: points.of(range), losses: losses.of(range) }),

    /** After an alarm was acknowledged, or deliveries were paused or resumed. */
    async changed() {
      losses.clear();
      await pauses.clear();
    },
  };
}

/** The rows with the names of their clients. */
async function withClients<Row extends { clientId: string }>(manager: EntityManager, rows: Row[]) {
  const names = await namesOf(
    manager,
    Client,
    rows.map(({ clientId }) => clientId),
  );
  return rows.map((row) => ({ ...row, client: { id: row.clientId, name: names.get(row.clientId) } }));
}
