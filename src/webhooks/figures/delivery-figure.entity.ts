import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, text, wholeNumber } from '../../database/columns.js';
import { HOST_LENGTH } from '../contact/failing-host.entity.js';
import { DURATION_BOUNDS_MS, RECEIPT_BOUNDS_MS } from './histogram.js';

/**
 * The outcomes of a period, added up in the transactions that recorded them. A row of a client and a host is for an hour. A
 * row whose client and host are empty is for all clients and for five minutes.
 */
@Entity('usher_delivery_figure')
@Index('usher_delivery_figure_period', ['startsAt'])
@Index('usher_delivery_figure_host', ['host', 'startsAt'])
export class DeliveryFigure {
  /** Empty: all clients. */
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The beginning of the period in which the attempts ended. */
  @PrimaryColumn(wholeNumber('starts_at'))
  startsAt: number;

  /** Of the Notify URL, with the port if it has one. Empty: all hosts. */
  @PrimaryColumn(text('host', HOST_LENGTH))
  host: string;

  /** Processes write different shards, so that they do not wait for each other. Readers add them up. */
  @PrimaryColumn({ name: 'shard', type: 'int' })
  shard: number;
}

/** Column names of a histogram, one for each bucket. */
const bucketColumns = (name: string, bounds: number[]): string[] =>
  Array.from({ length: bounds.length + 1 }, (_, bucket) => `${name}_${bucket}`);

export const DURATION_COLUMNS = bucketColumns('duration', DURATION_BOUNDS_MS);
export const RECEIPT_COLUMNS = bucketColumns('receipt', RECEIPT_BOUNDS_MS);

/** Attempts that ended, those that failed, webhooks that ended SUCCESS and FAILED, and the milliseconds of all attempts. */
const TOTALS = ['attempts', 'failures', 'delivered', 'ended_failed', 'duration_sum'] as const;

/** The columns that are added up. A cell is a whole number. */
export const FIGURE_COLUMNS = [...TOTALS, ...DURATION_COLUMNS, ...RECEIPT_COLUMNS];

for (const name of FIGURE_COLUMNS)
  Column(name === 'duration_sum' ? wholeNumber(name) : { name, type: 'int' })(DeliveryFigure.prototype, name);
