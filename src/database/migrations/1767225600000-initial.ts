import {
  type MigrationInterface,
  type QueryRunner,
  Table,
  type TableColumnOptions,
  type TableIndexOptions,
} from 'typeorm';
import { authorizationTables } from './authorization-tables.js';
import { columnsFor, ofOwners, tablePath } from './column-types.js';
import { contactTables } from './contact-tables.js';
import { operatorTables } from './operator-tables.js';
import { figureTables } from './figure-tables.js';
import { orderTables } from './order-tables.js';

/** MySQL commits every statement of a migration. Each step therefore skips what a process that was killed has done. */
export class Initial1767225600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const columns = columnsFor(runner);
    const { text, longText, wholeNumber, smallNumber } = columns;
    const create = (name: string, columns: TableColumnOptions[], indices: TableIndexOptions[] = []) =>
      runner.createTable(new Table({ name: tablePath(runner, name), columns, indices }), true);
    const optional = { isNullable: true };
    const primary = { isPrimary: true };

    await create('usher_client', [
      text('id', 255, primary),
      text('name', 200),
      text('notify_url', 2048, optional),
      text('contact', 254, optional),
      text('grant_types', 100),
      wholeNumber('created_at'),
      wholeNumber('disabled_at', optional),
      smallNumber('token_generation'),
    ]);
    await create(
      'usher_client_secret',
      [
        text('id', 22, primary),
        text('client_id', 255),
        text('key_id', 64),
        text('digest', 64),
        longText('sealed'),
        wholeNumber('created_at'),
        wholeNumber('expires_at', optional),
        text('rotation_key', 43, optional),
      ],
      [{ name: 'usher_client_secret_client', columnNames: ['client_id'] }],
    );
    await create(
      'usher_grant',
      [
        text('id', 22, primary),
        text('client_id', 255),
        text('owner_id', 191, optional),
        text('refresh_digest', 43),
        text('access_digest', 43, optional),
        wholeNumber('access_expires_at'),
        smallNumber('generation'),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_grant_refresh_digest', columnNames: ['refresh_digest'], isUnique: true },
        { name: 'usher_grant_access_digest', columnNames: ['access_digest'], isUnique: true },
        { name: 'usher_grant_expiry', columnNames: ['expires_at'] },
        ofOwners({ name: 'usher_grant_owner', columnNames: ['owner_id'] }),
      ],
    );
    await create(
      'usher_access_token',
      [
        text('digest', 43, primary),
        text('grant_id', 22),
        text('client_id', 255),
        text('owner_id', 191, optional),
        smallNumber('generation'),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_access_token_grant', columnNames: ['grant_id'] },
        { name: 'usher_access_token_expiry', columnNames: ['expires_at'] },
      ],
    );
    await create(
      'usher_webhook',
      [
        text('id', 22, primary),
        text('reference_id', 191),
        text('event_type', 64),
        text('live_key', 255, optional),
        text('client_id', 255),
        text('owner_id', 191, optional),
        text('notify_url', 2048),
        { name: 'uses_client_url', type: 'boolean' },
        longText('body'),
        text('status', 10),
        smallNumber('attempts'),
        wholeNumber('next_attempt_at', optional),
        wholeNumber('created_at'),
        wholeNumber('finished_at', optional),
        text('resend_of', 22, optional),
        text('request_id', 64, optional),
        wholeNumber('purged_at', optional),
      ],
      [
        { name: 'usher_webhook_live_key', columnNames: ['live_key'], isUnique: true },
        { name: 'usher_webhook_due', columnNames: ['status', 'next_attempt_at', 'id'] },
        { name: 'usher_webhook_reference', columnNames: ['reference_id', 'id'] },
        { name: 'usher_webhook_client', columnNames: ['client_id', 'id'] },
        ofOwners({ name: 'usher_webhook_owner', columnNames: ['owner_id', 'id'] }),
        { name: 'usher_webhook_client_status', columnNames: ['client_id', 'status', 'id'] },
        { name: 'usher_webhook_created', columnNames: ['created_at'] },
        { name: 'usher_webhook_retention', columnNames: ['purged_at', 'finished_at'] },
      ],
    );
    await create(
      'usher_delivered_reference',
      [
        text('webhook_id', 22, primary),
        text('reference_id', 191),
        text('event_type', 64),
        text('client_id', 255),
        text('owner_id', 191, optional),
        smallNumber('attempts'),
        wholeNumber('finished_at'),
      ],
      [{ name: 'usher_delivered_reference_key', columnNames: ['reference_id', 'event_type'], isUnique: true }],
    );
    await create(
      'usher_webhook_attempt',
      [
        text('webhook_id', 22, primary),
        smallNumber('number', primary),
        wholeNumber('started_at'),
        wholeNumber('duration_ms', optional),
        text('phase', 20, optional),
        text('address', 64, optional),
        smallNumber('response_status', optional),
        text('error', 500, optional),
        text('diagnosis', 40, optional),
        longText('response_snippet', optional),
      ],
      [{ name: 'usher_webhook_attempt_started', columnNames: ['started_at'] }],
    );
    await create(
      'usher_webhook_resend',
      [
        text('id', 22, primary),
        text('client_id', 255, optional),
        text('owner_id', 191, optional),
        text('reference_id', 191, optional),
        wholeNumber('failed_since', optional),
        wholeNumber('failed_until', optional),
        text('host', 260, optional),
        text('reason', 40, optional),
        wholeNumber('made_since', optional),
        wholeNumber('made_until', optional),
        longText('webhook_ids', optional),
        { name: 'is_limited', type: 'boolean' },
        { name: 'is_stopped', type: 'boolean' },
        text('done_from_id', 22, optional),
        smallNumber('selected', optional),
        smallNumber('resent'),
        smallNumber('refused'),
        text('actor', 300),
        text('actor_address', 255, optional),
        text('request_id', 64, optional),
        wholeNumber('created_at'),
        wholeNumber('finished_at', optional),
      ],
      [{ name: 'usher_webhook_resend_finished', columnNames: ['finished_at', 'id'] }],
    );
    await create(
      'usher_audit_event',
      [
        text('id', 22, primary),
        wholeNumber('created_at'),
        text('actor', 300),
        text('address', 255, optional),
        text('action', 64),
        text('subject', 300, optional),
        longText('detail'),
      ],
      [
        { name: 'usher_audit_event_created', columnNames: ['created_at'] },
        { name: 'usher_audit_event_subject', columnNames: ['subject', 'id'] },
      ],
    );
    for (const tables of [orderTables, authorizationTables, operatorTables, contactTables, figureTables])
      for (const table of tables(columns)) await create(...table);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of [
      'process',
      'delivery_figure',
      'contact_state',
      'failing_host',
      'operator_session',
      'operator',
      'member_session',
      'member',
      'consent',
      'authorization',
      'client_application',
      'audit_event',
      'webhook_resend',
      'webhook_attempt',
      'delivered_reference',
      'webhook',
      'idempotency_key',
      'order_counter',
      'movie_order',
      'access_token',
      'grant',
      'client_secret',
      'client',
    ]) {
      await runner.dropTable(tablePath(runner, `usher_${name}`), true);
    }
  }
}
