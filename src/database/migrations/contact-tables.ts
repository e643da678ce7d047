import type { columnsFor, NewTable } from './column-types.js';

/** The tables of the messages to clients' contacts, a part of the initial migration. */
export function contactTables({ text, wholeNumber, smallNumber }: ReturnType<typeof columnsFor>): NewTable[] {
  const optional = { isNullable: true };
  const primary = { isPrimary: true };
  return [
    [
      'usher_failing_host',
      [
        text('client_id', 255, primary),
        text('host', 260, primary),
        wholeNumber('failing_since'),
        wholeNumber('last_failed_at'),
        text('last_error', 500),
        text('last_diagnosis', 40, optional),
        wholeNumber('first_ended_failed_at', optional),
        wholeNumber('recovered_at', optional),
        wholeNumber('announced_at', optional),
        wholeNumber('message_due_at', optional),
      ],
      [
        { name: 'usher_failing_host_due', columnNames: ['message_due_at'] },
        { name: 'usher_failing_host_age', columnNames: ['last_failed_at'] },
      ],
    ],
    [
      'usher_contact_state',
      [
        text('client_id', 255, primary),
        smallNumber('sent'),
        wholeNumber('not_before'),
        smallNumber('failures'),
        wholeNumber('leased_until'),
      ],
    ],
  ];
}
