import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, MoreThanOrEqual } from 'typeorm';
import { tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import { deliveredView, type WebhookView, webhookView } from '../../webhooks/webhook-view.js';
import { DeliveredReference, Webhook, WebhookAttempt, type WebhookStatus } from '../../webhooks/webhook.entity.js';
import { CachedQuery } from '../health/cached-query.js';

export interface Receiver {
  origin: string;
  attempts: number;
  failures: number;
  averageMs: number;
}

/** Attempts that started within one interval of the chart. */
export interface Interval {
  delivered: number;
  failed: number;
}

export interface RecentActivity {
  today: Record<WebhookStatus, number>;
  receivers: Receiver[];
  intervals: Interval[];
  failed: WebhookView[];
}

export const CHART_HOURS = 6;
export const INTERVALS = 36;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const INTERVAL_MS = (CHART_HOURS * HOUR_MS) / INTERVALS;
/** A page counts only this many of the newest rows, because more would make it slow. */
const MAX_ROWS = 100_000;
const MAX_LISTED = 20;
const MAX_FOUND = 50;

/** Recent deliveries for the operator's pages. The queries use indices over time and run at most every few seconds. */
@Injectable()
export class Activity {
  readonly recent: CachedQuery<RecentActivity>;

  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {
    this.recent = new CachedQuery(() => this.read());
  }

  /** Finds the webhook with this id, then those of this order, then those of this client; each newest first. */
  async search(query: string): Promise<WebhookView[]> {
    // No id contains a control character, and Postgres refuses NUL.
    if (/\p{Cc}/u.test(query)) return [];
    const fields = ['id', 'referenceId', 'clientId'] as const;
    const found = await Promise.all(
      fields.map((field) =>
        this.dataSource.manager.find(Webhook, { where: { [field]: query }, order: { id: 'DESC' }, take: MAX_FOUND }),
      ),
    );
    if (found.flat().length > 0) return found.flat().map(webhookView);
    const delivered = [{ webhookId: query }, { referenceId: query }];
    return (await this.dataSource.manager.find(DeliveredReference, { where: delivered })).map(deliveredView);
  }

  private async read(): Promise<RecentActivity> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const midnight = now - (now % DAY_MS);
    const since = now - (now % INTERVAL_MS) + INTERVAL_MS - CHART_HOURS * HOUR_MS;
    return {
      today: await statusesSince(manager, midnight),
      receivers: await receiversSince(manager, since),
      intervals: await intervalsSince(manager, since),
      failed: await failedSince(manager, now - DAY_MS),
    };
  }
}

async function statusesSince(manager: EntityManager, since: number): Promise<RecentActivity['today']> {
  const rows = await manager.sql<{ status: WebhookStatus; count: string }[]>`
    SELECT status, COUNT(*) AS count FROM (
      SELECT status FROM ${() => tableOf(manager.dataSource, Webhook)} WHERE created_at >= ${since}
      ORDER BY created_at DESC LIMIT ${() => String(MAX_ROWS)}) AS newest GROUP BY status`;
  const counts = Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
  return { PENDING: 0, SUCCESS: 0, FAILED: 0, ...counts };
}

/** SQL for `scheme://host:port` of a Notify URL. */
const originOf = ({ options }: DataSource): string =>
  options.type === 'postgres' ? "substring(notify_url from '^[^/]*//[^/?]*')" : "SUBSTRING_INDEX(notify_url, '/', 3)";

async function receiversSince(manager: EntityManager, since: number): Promise<Receiver[]> {
  const rows = await manager.sql<Record<'origin' | 'attempts' | 'failures' | 'average', string>[]>`
    SELECT ${() => originOf(manager.dataSource)} AS origin, COUNT(*) AS attempts,
      SUM(CASE WHEN error IS NULL THEN 0 ELSE 1 END) AS failures, AVG(duration_ms) AS average
    FROM (SELECT webhook_id, error, duration_ms FROM ${() => tableOf(manager.dataSource, WebhookAttempt)}
      WHERE started_at >= ${since} AND duration_ms IS NOT NULL
      ORDER BY started_at DESC LIMIT ${() => String(MAX_ROWS)}) AS newest
    JOIN ${() => tableOf(manager.dataSource, Webhook)} ON id = webhook_id GROUP BY ${() => originOf(manager.dataSource)}`;
  return rows.map(({ origin, attempts, failures, average }) => ({
    origin,
    attempts: Number(attempts),
    failures: Number(failures),
    averageMs: Math.round(Number(average)),
  }));
}

async function intervalsSince(manager: EntityManager, since: number): Promise<Interval[]> {
  const rows = await manager.sql<Record<'period' | 'attempts' | 'failed', string>[]>`
    SELECT period, COUNT(*) AS attempts, SUM(failed) AS failed FROM (
      SELECT FLOOR((started_at - ${since}) / ${() => String(INTERVAL_MS)}) AS period,
        CASE WHEN error IS NULL THEN 0 ELSE 1 END AS failed
      FROM ${() => tableOf(manager.dataSource, WebhookAttempt)} WHERE started_at >= ${since} AND duration_ms IS NOT NULL
      ORDER BY started_at DESC LIMIT ${() => String(MAX_ROWS)}) AS newest GROUP BY period`;
  const intervals = Array.from({ length: INTERVALS }, (): Interval => ({ delivered: 0, failed: 0 }));
  for (const { period, attempts, failed } of rows) {
    intervals[Math.min(Number(period), INTERVALS - 1)] = {
      delivered: Number(attempts) - Number(failed),
      failed: Number(failed),
    };
  }
  return intervals;
}

async function failedSince(manager: EntityManager, since: number): Promise<WebhookView[]> {
  const rows = await manager.find(Webhook, {
    where: { status: 'FAILED', createdAt: MoreThanOrEqual(since) },
    order: { createdAt: 'DESC' },
    take: MAX_LISTED,
  });
  return rows.map(webhookView);
}
