import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { type DataSource, type EntityManager, MoreThanOrEqual } from 'typeorm';
import { databaseNow } from '../../database/sql.js';
import { type WebhookView, webhookView } from '../../webhooks/webhook-view.js';
import { Webhook, type WebhookStatus } from '../../webhooks/webhook.entity.js';
import { CachedQuery } from '../health/cached-query.js';

export interface Receiver {
  origin: string;
  attempts: number;
  failures: number;
  averageMs: number;
}

/** Attempts that began within a part of the time looked at. */
export interface Part {
  delivered: number;
  failed: number;
}

export interface RecentActivity {
  today: Record<WebhookStatus, number>;
  receivers: Receiver[];
  parts: Part[];
  failed: WebhookView[];
}

export const HOURS = 6;
export const PARTS = 36;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PART_MS = (HOURS * HOUR_MS) / PARTS;
/** Of the newest so many a page tells; what lies beyond would make it slow. */
const MOST = 100_000;
const LISTED = 20;
const FOUND = 50;

/** What recent recent, by indices over time, asked for at most every few seconds. */
@Injectable()
export class Activity {
  readonly recent: CachedQuery<RecentActivity>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.recent = new CachedQuery(() => this.read());
  }

  /** Newest first: the webhook of this id, those of this order, those of this client. */
  async search(query: string): Promise<WebhookView[]> {
    // Nothing of ours has any in it, and Postgres does not take them.
    if (/\p{Cc}/u.test(query)) return [];
    const fields = ['id', 'referenceId', 'clientId'] as const;
    const found = await Promise.all(
      fields.map((field) =>
        this.dataSource.manager.find(Webhook, { where: { [field]: query }, order: { id: 'DESC' }, take: FOUND }),
      ),
    );
    return found.flat().map(webhookView);
  }

  private async read(): Promise<RecentActivity> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const midnight = now - (now % DAY_MS);
    const since = now - (now % PART_MS) + PART_MS - HOURS * HOUR_MS;
    return {
      today: await statusesSince(manager, midnight),
      receivers: await receiversSince(manager, since),
      parts: await partsSince(manager, since),
      failed: await failedSince(manager, now - DAY_MS),
    };
  }
}

async function statusesSince(manager: EntityManager, since: number): Promise<RecentActivity['today']> {
  const rows = await manager.sql<{ status: WebhookStatus; count: string }[]>`
    SELECT status, COUNT(*) AS count FROM (
      SELECT status FROM usher_webhook WHERE created_at >= ${since}
      ORDER BY created_at DESC LIMIT ${() => String(MOST)}) AS newest GROUP BY status`;
  const counts = Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
  return { PENDING: 0, SUCCESS: 0, FAILED: 0, ...counts };
}

/** `scheme://host:port` of a Notify URL. */
const originOf = ({ options }: DataSource): string =>
  options.type === 'postgres' ? "substring(notify_url from '^[^/]*//[^/?]*')" : "SUBSTRING_INDEX(notify_url, '/', 3)";

async function receiversSince(manager: EntityManager, since: number): Promise<Receiver[]> {
  const rows = await manager.sql<Record<'origin' | 'attempts' | 'failures' | 'average', string>[]>`
    SELECT ${() => originOf(manager.dataSource)} AS origin, COUNT(*) AS attempts,
      SUM(CASE WHEN error IS NULL THEN 0 ELSE 1 END) AS failures, AVG(duration_ms) AS average
    FROM (SELECT webhook_id, error, duration_ms FROM usher_webhook_attempt
      WHERE started_at >= ${since} AND duration_ms IS NOT NULL
      ORDER BY started_at DESC LIMIT ${() => String(MOST)}) AS newest
    JOIN usher_webhook ON id = webhook_id GROUP BY ${() => originOf(manager.dataSource)}`;
  return rows.map(({ origin, attempts, failures, average }) => ({
    origin,
    attempts: Number(attempts),
    failures: Number(failures),
    averageMs: Math.round(Number(average)),
  }));
}

async function partsSince(manager: EntityManager, since: number): Promise<Part[]> {
  const rows = await manager.sql<Record<'part' | 'attempts' | 'failed', string>[]>`
    SELECT part, COUNT(*) AS attempts, SUM(failed) AS failed FROM (
      SELECT FLOOR((started_at - ${since}) / ${() => String(PART_MS)}) AS part,
        CASE WHEN error IS NULL THEN 0 ELSE 1 END AS failed
      FROM usher_webhook_attempt WHERE started_at >= ${since} AND duration_ms IS NOT NULL
      ORDER BY started_at DESC LIMIT ${() => String(MOST)}) AS newest GROUP BY part`;
  const parts = Array.from({ length: PARTS }, (): Part => ({ delivered: 0, failed: 0 }));
  for (const { part, attempts, failed } of rows) {
    parts[Math.min(Number(part), PARTS - 1)] = { delivered: Number(attempts) - Number(failed), failed: Number(failed) };
  }
  return parts;
}

async function failedSince(manager: EntityManager, since: number): Promise<WebhookView[]> {
  const rows = await manager.find(Webhook, {
    where: { status: 'FAILED', createdAt: MoreThanOrEqual(since) },
    order: { createdAt: 'DESC' },
    take: LISTED,
  });
  return rows.map(webhookView);
}
