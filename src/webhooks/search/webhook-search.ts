import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { dataSourceOf, dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type Parameter, runSql } from '../../database/statements/statement.js';
import {
  type BoundedSearch,
  boundedSearch,
  type FoundIds,
  MAX_EXAMINED,
} from '../../database/statements/bounded-search.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { firstIdAt } from '../../values/identifier.js';
import { compared, selectWebhooks, type Which, webhookIds } from '../undelivered/webhook-ids.js';
import { Webhook } from '../webhook.entity.js';
import { sentAgain, rowConditions, type WebhookCriteria } from './webhook-criteria.js';

/**
 * So many PENDING webhooks of all clients are sorted in memory, because their index is in the order of the next attempts.
 */
const MAX_SORTED = 10_000;

type Source = BoundedSearch['source'];

/** By the time at which webhooks were made, or at which they ended. */
export type WebhookOrder = 'newest' | 'oldest' | 'ended first' | 'ended last';

/**
 * Finds webhooks by the criteria of an operator, newest first. It reads an index that has the ids in their order, and
 * checks other conditions for a bounded number of webhooks. Ids sort by time, so a period is a range of ids.
 */
@Injectable()
export class WebhookSearch {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** At most `most` ids that follow `before` in the order. */
  async find(
    criteria: WebhookCriteria,
    before: string | null,
    most: number,
    order: WebhookOrder = 'newest',
  ): Promise<FoundIds> {
    if (order !== 'newest') return this.findInOrder(criteria, before, most, order);
    const { source, rest } = await this.sourceOf(criteria);
    const isExact = conditionsOf(this.dataSource, rest, () => '').length === 0;
    const fitting = isExact ? null : (ids: string[]) => fittingIds(this.dataSource, ids, rest);
    const { end } = this.boundsOf(criteria);
    return boundedSearch({ source, fitting, before: end && (before === null || end < before) ? end : before, most });
  }

  /**
   * How many fit among {@link MAX_EXAMINED} webhooks, and whether there may be more. `clients` is the number of their clients; it
   * is 0 if an index alone tells how many there are.
   */
  async count(criteria: WebhookCriteria): Promise<{ count: number; clients: number; isMore: boolean }> {
    const { which, rest } = whichOf(criteria);
    const { from, end } = this.boundsOf(criteria);
    const part = { before: end, from, most: MAX_EXAMINED + 1 };
    const { rows } = await runSql(this.dataSource, (parameter) => {
      const conditions = conditionsOf(this.dataSource, rest, parameter);
      const select = (columns: string) => `(${selectWebhooks(this.dataSource, which, part, parameter, columns)}) w`;
      if (conditions.length === 0) return `SELECT COUNT(*) AS examined, COUNT(*) AS fitting FROM ${select('id')}`;
      return `
        SELECT client_id, COUNT(*) AS examined, SUM(CASE WHEN ${conditions.join(' AND ')} THEN 1 ELSE 0 END) AS fitting
        FROM ${select(EXAMINED)} GROUP BY client_id`;
    });
    const sum = (column: string) => rows.reduce((sum, row) => sum + Number(row[column]), 0);
    const isMore = sum('examined') > MAX_EXAMINED;
    const clients = rows.filter(({ client_id: id, fitting }) => id && Number(fitting) > 0).length;
    return { count: Math.min(sum('fitting'), MAX_EXAMINED), clients, isMore };
  }

  /** Reads along the index of the order, and checks every criterion in the rows. */
  private async findInOrder(
    criteria: WebhookCriteria,
    before: string | null,
    most: number,
    order: Exclude<WebhookOrder, 'newest'>,
  ): Promise<FoundIds> {
    const { from, end } = this.boundsOf(criteria);
    const oldest = (last: string | null, count: number) => {
      const which = { clientId: criteria.clientId, referenceId: criteria.referenceId };
      return webhookIds(this.dataSource, [which], { after: last ?? '', before: end, from, most: count });
    };
    const source = order === 'oldest' ? oldest : (last: string | null, count: number) => this.ended(last, count, order);
    const fitting = async (ids: string[]) => {
      const isWithin = (id: string) => (!from || id >= from) && (!end || id < end);
      const fits = new Set(await fittingIds(this.dataSource, ids.filter(isWithin), criteria));
      return ids.filter((id) => fits.has(id));
    };
    return boundedSearch({ source, fitting, before, most });
  }

  /** Webhooks that have ended, by the index of their ends, without those that the purge has emptied. */
  private async ended(last: string | null, most: number, order: 'ended first' | 'ended last'): Promise<string[]> {
    const [direction, comparison] = order === 'ended first' ? ['ASC', '>'] : ['DESC', '<'];
    const table = tableOf(this.dataSource, Webhook);
    const { byIndex, orderBy } = dialectOf(this.dataSource);
    const { rows } = await runSql(this.dataSource, (parameter) => {
      const behind = (
        id: string,
      ) => `AND finished_at ${comparison}= (SELECT finished_at FROM ${table} WHERE id = ${parameter(id)})
        AND (finished_at <> (SELECT finished_at FROM ${table} WHERE id = ${parameter(id)}) OR id ${comparison} ${parameter(id)})`;
      return `SELECT id FROM ${table} ${byIndex('usher_webhook_retention')}
        WHERE purged_at IS NULL AND finished_at IS NOT NULL ${last === null ? '' : behind(last)}
        ORDER BY ${orderBy([`purged_at ${direction}`], [`finished_at ${direction}`, `id ${direction}`]).join(', ')} LIMIT ${most}`;
    });
    return rows.map(({ id }) => String(id));
  }

  /**
   * By client: how many FAILED webhooks that ended at `since` or later were not sent again. `ended`: how many ended, by the
   * figures. `isCapped`: not all of these are among the newest {@link MAX_EXAMINED} FAILED ones, which alone are looked at. A
   * pause may have held them, so the time of their making tells nothing.
   */
  async lost(ended: Map<string, number>, since: number): Promise<Map<string, { lost: number; isCapped: boolean }>> {
    if (ended.size === 0) return new Map();
    const webhooks = tableOf(this.dataSource, Webhook);
    const index = dialectOf(this.dataSource).byIndex('usher_webhook_client_status');
    const { rows } = await runSql(this.dataSource, (parameter) =>
      [...ended.keys()]
        .map(
          (id) => `
            SELECT w.client_id, COUNT(*) AS examined, COUNT(CASE WHEN w.finished_at >= ${parameter(since)} THEN 1 END) AS ended,
              COUNT(CASE WHEN w.finished_at >= ${parameter(since)} AND ${sentAgain(this.dataSource, false, 'w')} THEN 1 END) AS lost
            FROM (
              SELECT id FROM ${webhooks} ${index}
              WHERE client_id = ${parameter(id)} AND status = 'FAILED'
              ORDER BY client_id DESC, status DESC, id DESC LIMIT ${MAX_EXAMINED}) AS f
            JOIN ${webhooks} w ON w.id = f.id GROUP BY w.client_id`,
        )
        .join(' UNION ALL '),
    );
    return new Map(
      rows.map(({ client_id: id, lost, ...found }) => {
        const isCapped = Number(found.examined) >= MAX_EXAMINED && Number(found.ended) < (ended.get(String(id)) ?? 0);
        return [String(id), { lost: Number(lost), isCapped }];
      }),
    );
  }

  private boundsOf({ since, until }: WebhookCriteria) {
    const { environment } = this.options;
    return { from: firstIdAt(environment, since), end: firstIdAt(environment, until) };
  }

  /** What reads the best index for the criteria, and what is left to look up in the rows. */
  private async sourceOf(criteria: WebhookCriteria): Promise<{ source: Source; rest: Rest }> {
    const { which, rest } = whichOf(criteria);
    const { from } = this.boundsOf(criteria);
    const byIndex =
      (which: Which[]): Source =>
      (before, most) =>
        webhookIds(this.dataSource, which, { before, from, most });
    const ended = which.filter(({ status, clientId }) => status !== 'PENDING' || clientId !== null);
    if (ended.length === which.length) return { source: byIndex(which), rest };
    const pending = await this.pending();
    // There are so many that reading all webhooks soon finds some.
    if (pending === null) return { source: byIndex([{}]), rest: { ...rest, status: criteria.status } };
    const ofPending = inMemory(pending, from);
    return { source: ended.length > 0 ? merged(byIndex(ended), ofPending) : ofPending, rest };
  }

  /** All PENDING webhooks, the newest first. Null if there are more than {@link MAX_SORTED}. */
  private async pending(): Promise<string[] | null> {
    const { rows } = await runSql(
      this.dataSource,
      () => `SELECT id FROM ${tableOf(this.dataSource, Webhook)} WHERE status = 'PENDING' LIMIT ${MAX_SORTED + 1}`,
    );
    const ids = newestFirst(rows.map(({ id }) => String(id)));
    return ids.length > MAX_SORTED ? null : ids;
  }
}

/** The columns that the conditions on a row use. */
const EXAMINED = 'id, client_id, reference_id, event_type, notify_url, status, attempts, finished_at';

/** The webhooks that an index has for the criteria, and what is left to look up in the rows. A reason is that of a failure. */
function whichOf({ status, clientId, referenceId, ...rest }: WebhookCriteria): { which: Which[]; rest: Rest } {
  if (referenceId !== null) return { which: [{ referenceId }], rest: { ...rest, status, clientId } };
  const isUndelivered = status === null && rest.reason !== null;
  const statuses = isUndelivered ? (['FAILED', 'PENDING'] as const) : [status];
  return { which: statuses.map((status) => ({ status, clientId })), rest };
}

const inMemory =
  (ids: string[], from: string | null): Source =>
  (before, most) => {
    const isWithin = (id: string): boolean => (before === null || id < before) && (from === null || id >= from);
    return Promise.resolve(ids.filter(isWithin).slice(0, most));
  };

const merged =
  (...sources: Source[]): Source =>
  async (before, most) => {
    const ids = (await Promise.all(sources.map((source) => source(before, most)))).flat();
    return newestFirst(ids).slice(0, most);
  };

const newestFirst = (ids: string[]): string[] => ids.sort().reverse();

/** The criteria that the index of a search does not cover. */
type Rest = Partial<Omit<WebhookCriteria, 'since' | 'until'>> & { asOf?: string };

/** Those of the ids whose webhooks fit, the newest first. */
export async function fittingIds(on: DataSource | EntityManager, ids: string[], rest: Rest): Promise<string[]> {
  if (ids.length === 0) return [];
  const { rows } = await runSql(on, (parameter) => {
    const among = `w.id ${dialectOf(on).isOneOf(parameter, ids)}`;
    const conditions = [among, ...conditionsOf(dataSourceOf(on), rest, parameter)].join(' AND ');
    return `SELECT w.id FROM ${tableOf(on, Webhook)} w WHERE ${conditions} ORDER BY w.id DESC`;
  });
  return rows.map(({ id }) => String(id));
}

const conditionsOf = (dataSource: DataSource, rest: Rest, parameter: Parameter): string[] => [
  ...compared(
    { 'w.status =': rest.status, 'w.client_id =': rest.clientId, 'w.reference_id =': rest.referenceId },
    parameter,
  ),
  ...rowConditions(dataSource, rest, parameter),
];
