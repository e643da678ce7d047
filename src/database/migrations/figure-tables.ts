import type { columnsFor, NewTable } from './column-types.js';

/** The tables of the figures of deliveries and of the processes, a part of the initial migration. */
export function figureTables({ text, wholeNumber, smallNumber }: ReturnType<typeof columnsFor>): NewTable[] {
  const primary = { isPrimary: true };
  const buckets = (name: string, count: number) =>
    Array.from({ length: count }, (_, bucket) => smallNumber(`${name}_${bucket}`));
  return [
    [
      'usher_delivery_figure',
      [
        text('client_id', 255, primary),
        wholeNumber('starts_at', primary),
        text('host', 260, primary),
        smallNumber('shard', primary),
        smallNumber('attempts'),
        smallNumber('failures'),
        smallNumber('delivered'),
        smallNumber('ended_failed'),
        wholeNumber('duration_sum'),
        ...buckets('duration', 14),
        ...buckets('receipt', 16),
      ],
      [
        { name: 'usher_delivery_figure_period', columnNames: ['starts_at'] },
        { name: 'usher_delivery_figure_host', columnNames: ['host', 'starts_at'] },
      ],
    ],
    [
      'usher_process',
      [
        text('id', 22, primary),
        text('name', 255),
        text('role', 10),
        text('version', 40),
        wholeNumber('started_at'),
        wholeNumber('seen_at'),
        wholeNumber('clock_ahead'),
      ],
      [{ name: 'usher_process_seen', columnNames: ['seen_at'] }],
    ],
  ];
}
