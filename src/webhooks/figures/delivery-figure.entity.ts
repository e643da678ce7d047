import { Entity, Index } from 'typeorm';
import { CLIENT_ID_LENGTH, Int, PRIMARY, Text, WholeNumber } from '../../database/columns.js';
import { HOST_LENGTH } from '../../values/urls/notify-url.js';

/**
 * The outcomes of a period, added up in the transactions that recorded them. A row of a client and a host is for an hour. A
 * row whose client and host are empty is for all clients and for five minutes.
 */
@Entity('usher_delivery_figure')
@Index('usher_delivery_figure_period', ['startsAt'])
@Index('usher_delivery_figure_host', ['host', 'startsAt'])
export class DeliveryFigure {
  /** Empty: all clients. */
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** The beginning of the period in which the attempts ended. */
  @WholeNumber(PRIMARY)
  startsAt: number;

  /** Of the Notify URL, with the port if it has one. Empty: all hosts. */
  @Text(HOST_LENGTH, PRIMARY)
  host: string;

  /** Processes write different shards, so that they do not wait for each other. Readers add them up. */
  @Int(PRIMARY)
  shard: number;
}

/** The upper bounds of the buckets in milliseconds, and the column of each bucket. A last bucket counts what is longer. */
const histogram = (name: string, bounds: number[]) => ({
  bounds,
  columns: [...bounds, Infinity].map((_, bucket) => `${name}_${bucket}`),
});
export type Histogram = ReturnType<typeof histogram>;

export const DURATIONS = histogram(
  'duration',
  [10, 25, 50, 100, 200, 400, 700, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000],
);

/** Times from the creation of a webhook to its success: from a quick first attempt to the fifth one. */
export const RECEIPTS = histogram(
  'receipt',
  [25, 50, 100, 200, 400, 700, 1_000, 2_000, 5_000, 15_000, 60_000, 150_000, 300_000, 600_000, 1_800_000],
);

/** Attempts that ended, those that failed, webhooks that ended SUCCESS and FAILED, and the milliseconds of all attempts. */
const TOTALS = ['attempts', 'failures', 'delivered', 'ended_failed', 'duration_sum'];

/** The columns that are added up. A cell is a whole number. */
export const FIGURE_COLUMNS = [...TOTALS, ...DURATIONS.columns, ...RECEIPTS.columns];

for (const name of FIGURE_COLUMNS) (name === 'duration_sum' ? WholeNumber() : Int())(DeliveryFigure.prototype, name);

export interface Quantile {
  ms: number;
  /** True in the last bucket, whose values are longer than `ms` by an unknown time. */
  isMore: boolean;
}

/** A quantile of counted values, interpolated within its bucket. Null if nothing was counted. */
export function quantile(bounds: number[], counts: number[], part: number): Quantile | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = part * total;
  let below = 0;
  for (const [bucket, upper] of bounds.entries()) {
    const count = counts[bucket] ?? 0;
    if (count > 0 && below + count >= rank) {
      const lower = bounds[bucket - 1] ?? 0;
      return { ms: Math.round(lower + ((upper - lower) * (rank - below)) / count), isMore: false };
    }
    below += count;
  }
  return { ms: bounds.at(-1) ?? 0, isMore: true };
}
