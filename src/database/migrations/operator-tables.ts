import type { columnsFor, NewTable } from './column-types.js';

/** The tables of the people who use the console, a part of the initial migration. */
export function operatorTables({ text, wholeNumber }: ReturnType<typeof columnsFor>): NewTable[] {
  const optional = { isNullable: true };
  const primary = { isPrimary: true };
  return [
    [
      'usher_operator',
      [
        text('id', 22, primary),
        text('name', 64),
        text('password_hash', 255),
        text('role', 16),
        wholeNumber('created_at'),
        wholeNumber('disabled_at', optional),
      ],
      [{ name: 'usher_operator_name', columnNames: ['name'], isUnique: true }],
    ],
    [
      'usher_operator_session',
      [
        text('digest', 43, primary),
        text('operator_id', 22, optional),
        text('settings_mac', 43, optional),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_operator_session_operator', columnNames: ['operator_id'] },
        { name: 'usher_operator_session_expiry', columnNames: ['expires_at'] },
      ],
    ],
  ];
}
