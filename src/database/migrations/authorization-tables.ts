import type { columnsFor, NewTable } from './column-types.js';

/** The tables of the authorization-code grant, a part of the initial migration. */
export function authorizationTables({ text, longText, wholeNumber }: ReturnType<typeof columnsFor>): NewTable[] {
  const optional = { isNullable: true };
  const primary = { isPrimary: true };
  return [
    [
      'usher_client_application',
      [text('client_id', 255, primary), longText('redirect_uris'), { name: 'is_trusted', type: 'boolean' }],
    ],
    [
      'usher_authorization',
      [
        text('form_digest', 43, primary),
        text('browser_digest', 43),
        text('client_id', 255),
        text('owner_id', 191),
        text('redirect_uri', 2048),
        longText('state', optional),
        text('code_challenge', 43),
        text('code_digest', 43, optional),
        text('grant_id', 22, optional),
        wholeNumber('used_at', optional),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_authorization_code', columnNames: ['code_digest'], isUnique: true },
        { name: 'usher_authorization_owner', columnNames: ['owner_id'] },
        { name: 'usher_authorization_expiry', columnNames: ['expires_at'] },
      ],
    ],
    ['usher_consent', [text('owner_id', 191, primary), text('client_id', 255, primary), wholeNumber('given_at')]],
    [
      'usher_member',
      [
        text('id', 22, primary),
        text('name', 191),
        text('password_hash', 255),
        wholeNumber('created_at'),
        wholeNumber('disabled_at', optional),
      ],
      [{ name: 'usher_member_name', columnNames: ['name'], isUnique: true }],
    ],
    [
      'usher_member_session',
      [text('digest', 43, primary), text('member_id', 22), wholeNumber('created_at'), wholeNumber('expires_at')],
      [
        { name: 'usher_member_session_member', columnNames: ['member_id'] },
        { name: 'usher_member_session_expiry', columnNames: ['expires_at'] },
      ],
    ],
  ];
}
