import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type Row, runSql } from '../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import {
  DeliveryFigure,
  DURATIONS,
  FIGURE_COLUMNS,
  type Histogram,
  quantile,
  RECEIPTS,
} from './delivery-figure.entity.js';

/** The sums of some rows of {@link DeliveryFigure}, by column. */
export type Sums = Record<string, number>;

/** The figures of some sums. Times in milliseconds; null where nothing was counted. */
export type Figures = ReturnType<typeof figuresOf>;

export interface HostFigures {
  host: string;
  /** How many clients have Notify URLs there. */
  clients: number;
  figures: Pick<Figures, 'attempts' | 'failures' | 'successRate' | 'duration'>;
}

const sumsOfColumns = (names: string[]): string => names.map((name) => `SUM(${name}) AS ${name}`).join(', ');

const SELECTED = sumsOfColumns(FIGURE_COLUMNS);
/** What a list of hosts shows: without the times to receipt, its sums take half the time. */
const SELECTED_OF_HOSTS = sumsOfColumns(['attempts', 'failures', ...DURATIONS.columns]);

/** The console shows 30 days of them, and the rest of the day on which those begin. */
const MAX_FIGURES_MS = 31 * 86_400_000;

export const figuresKeptMs = ({ retentionMs }: ResolvedOptions) => Math.min(retentionMs, MAX_FIGURES_MS);

/** Reads the figures of deliveries. Periods begin at multiples of their length since 1970. */
@Injectable()
export class DeliveryFigures {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Whether no figures since then were deleted because of their age. */
  isKept(since: number, now: number) {
    return since >= now - figuresKeptMs(this.options);
  }

  /** The sums of all clients by the beginning of their period, a multiple of five minutes. */
  ofAll(since: number, periodMs: number) {
    return this.byPeriod('client_id', '', since, periodMs);
  }

  /** The sums of a host by the beginning of their period, a multiple of an hour. */
  ofHost(host: string, since: number, periodMs: number) {
    return this.byPeriod('host', host, since, periodMs);
  }

  private async byPeriod(column: 'client_id' | 'host', value: string, since: number, periodMs: number) {
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT starts_at - MOD(starts_at, ${periodMs}) AS period, ${SELECTED} FROM ${this.table}
        WHERE ${column} = ${parameter(value)} AND starts_at >= ${parameter(since)} GROUP BY period`,
    );
    return new Map(rows.map((row) => [Number(row.period), sumsOf(row)]));
  }

  /**
   * The attempts at every host from `since` until `until`, those with the most failures first. Without `countsClients`, which
   * takes a third of the time, the number of clients is 0.
   */
  async hosts(since: number, until: number, most: number, countsClients = true): Promise<HostFigures[]> {
    const { rows } = await runSql(this.dataSource, (parameter) => {
      const found = `${this.table} WHERE starts_at >= ${parameter(since)} AND starts_at < ${parameter(until)} AND client_id <> ''`;
      // Counting distinct clients would sort all rows.
      const byClient = `(SELECT host, client_id, ${SELECTED_OF_HOSTS} FROM ${found} GROUP BY host, client_id) AS by_client`;
      return `
        SELECT host, ${countsClients ? 'COUNT(*)' : 0} AS clients, ${SELECTED_OF_HOSTS}
        FROM ${countsClients ? byClient : found} GROUP BY host
        ORDER BY failures DESC, attempts DESC, host LIMIT ${most}`;
    });
    return rows.map((row) => ({
      host: String(row.host),
      clients: Number(row.clients),
      figures: figuresOf([sumsOf(row)]),
    }));
  }

  /** The clients with attempts at a host, those with the most first. */
  async clientsOf(host: string, since: number, most: number) {
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT client_id, ${SELECTED} FROM ${this.table} WHERE host = ${parameter(host)} AND starts_at >= ${parameter(since)}
        GROUP BY client_id ORDER BY attempts DESC, client_id LIMIT ${most}`,
    );
    return rows.map((row) => ({ clientId: String(row.client_id), figures: figuresOf([sumsOf(row)]) }));
  }

  /**
   * How many webhooks ended FAILED from `since` until `until`, by client. `of`: these clients, or how many with the most.
   */
  async endedFailed(since: number, until: number, of: string[] | number): Promise<Map<string, number>> {
    if (Array.isArray(of) && of.length === 0) return new Map();
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT client_id, SUM(ended_failed) AS lost FROM ${this.table}
        WHERE starts_at >= ${parameter(since)} AND starts_at < ${parameter(until)} AND ended_failed > 0
          AND client_id ${typeof of === 'number' ? "<> ''" : dialectOf(this.dataSource).isOneOf(parameter, of)}
        GROUP BY client_id ORDER BY lost DESC, client_id ${typeof of === 'number' ? `LIMIT ${of}` : ''}`,
    );
    return new Map(rows.map(({ client_id: id, lost }) => [String(id), Number(lost)]));
  }

  private get table() {
    return tableOf(this.dataSource, DeliveryFigure);
  }
}

const sumsOf = (row: Row): Sums =>
  Object.fromEntries(FIGURE_COLUMNS.filter((name) => name in row).map((name) => [name, Number(row[name])]));

export function figuresOf(all: Sums[]) {
  const sum = (name: string): number => all.reduce((total, sums) => total + (sums[name] ?? 0), 0);
  const [attempts, failures] = [sum('attempts'), sum('failures')];
  const quantiles = ({ bounds, columns }: Histogram) => {
    const counts = columns.map(sum);
    return { p50: quantile(bounds, counts, 0.5), p95: quantile(bounds, counts, 0.95) };
  };
  return {
    attempts,
    failures,
    /** The part of the attempts that succeeded, from 0 to 1. */
    successRate: attempts === 0 ? null : (attempts - failures) / attempts,
    delivered: sum('delivered'),
    endedFailed: sum('ended_failed'),
    averageMs: attempts === 0 ? null : Math.round(sum('duration_sum') / attempts),
    /** Of attempts. */
    duration: quantiles(DURATIONS),
    /** From the creation of a webhook to its success. */
    receipt: quantiles(RECEIPTS),
  };
}
