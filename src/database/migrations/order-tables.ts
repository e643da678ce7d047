import { type columnsFor, type NewTable, ofOwners } from './column-types.js';

/** The tables of movie orders, a part of the initial migration. */
export function orderTables({ text, longText, wholeNumber }: ReturnType<typeof columnsFor>): NewTable[] {
  const optional = { isNullable: true };
  const primary = { isPrimary: true };
  return [
    [
      'usher_movie_order',
      [
        text('id', 22, primary),
        text('client_id', 255),
        text('owner_id', 191, optional),
        text('status', 20),
        text('currency_code', 3),
        wholeNumber('total_amount'),
        wholeNumber('booking_amount'),
        wholeNumber('payable_amount'),
        text('notify_url', 2048, optional),
        text('booking_id', 255, optional),
        text('transaction_id', 255, optional),
        longText('qr_code', optional),
        text('completed_by', 300, optional),
        text('completed_from', 255, optional),
        wholeNumber('created_at'),
        wholeNumber('last_updated_at'),
        wholeNumber('list_position', optional),
        wholeNumber('completion_position', optional),
      ],
      [
        { name: 'usher_movie_order_list', columnNames: ['client_id', 'list_position', 'id'] },
        {
          name: 'usher_movie_order_completions',
          columnNames: ['client_id', 'status', 'completion_position', 'last_updated_at'],
        },
        { name: 'usher_movie_order_day', columnNames: ['client_id', 'status', 'last_updated_at'] },
        ofOwners({ name: 'usher_movie_order_owner', columnNames: ['owner_id', 'id'] }),
        { name: 'usher_movie_order_retention', columnNames: ['status', 'last_updated_at'] },
      ],
    ],
    [
      'usher_order_counter',
      [text('client_id', 255, primary), wholeNumber('list_position'), wholeNumber('completion_position')],
    ],
    [
      'usher_idempotency_key',
      [
        text('client_id', 255, primary),
        text('owner_id', 191, primary),
        text('idempotency_key', 255, primary),
        text('request_digest', 43),
        text('order_id', 22),
        wholeNumber('created_at'),
      ],
      [{ name: 'usher_idempotency_key_age', columnNames: ['created_at'] }],
    ],
  ];
}
