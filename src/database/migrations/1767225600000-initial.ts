import {
  type MigrationInterface,
  type QueryRunner,
  Table,
  type TableColumnOptions,
  type TableIndexOptions,
} from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

export class Initial1767225600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, longText, wholeNumber, smallNumber } = columnsFor(runner);
    const create = (name: string, columns: TableColumnOptions[], indices: TableIndexOptions[] = []) =>
      runner.createTable(new Table({ name: tablePath(runner, name), columns, indices }));
    const optional = { isNullable: true };
    const primary = { isPrimary: true };

    await create('usher_client', [
      text('id', 255, primary),
      text('name', 200),
      text('notify_url', 2048, optional),
      text('grant_types', 100),
      wholeNumber('created_at'),
      wholeNumber('disabled_at', optional),
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
      ],
      [{ name: 'usher_client_secret_client', columnNames: ['client_id'] }],
    );
    await create(
      'usher_grant',
      [
        text('id', 22, primary),
        text('client_id', 255),
        text('refresh_digest', 43),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_grant_refresh_digest', columnNames: ['refresh_digest'], isUnique: true },
        { name: 'usher_grant_expiry', columnNames: ['expires_at'] },
      ],
    );
    await create(
      'usher_access_token',
      [
        text('digest', 43, primary),
        text('grant_id', 22),
        text('client_id', 255),
        wholeNumber('created_at'),
        wholeNumber('expires_at'),
      ],
      [
        { name: 'usher_access_token_grant', columnNames: ['grant_id'] },
        { name: 'usher_access_token_expiry', columnNames: ['expires_at'] },
      ],
    );
    await create(
      'usher_movie_order',
      [
        text('id', 22, primary),
        text('client_id', 255),
        text('status', 20),
        text('currency_code', 3),
        wholeNumber('total_amount'),
        wholeNumber('booking_amount'),
        wholeNumber('payable_amount'),
        text('notify_url', 2048, optional),
        text('booking_id', 255, optional),
        text('transaction_id', 255, optional),
        longText('qr_code', optional),
        wholeNumber('created_at'),
        wholeNumber('last_updated_at'),
      ],
      [
        { name: 'usher_movie_order_client', columnNames: ['client_id', 'id'] },
        { name: 'usher_movie_order_retention', columnNames: ['status', 'last_updated_at'] },
      ],
    );
    await create(
      'usher_idempotency_key',
      [
        text('client_id', 255, primary),
        text('idempotency_key', 255, primary),
        text('request_digest', 43),
        text('order_id', 22),
        wholeNumber('created_at'),
      ],
      [{ name: 'usher_idempotency_key_age', columnNames: ['created_at'] }],
    );
    await create(
      'usher_webhook',
      [
        text('id', 22, primary),
        text('reference_id', 191),
        text('event_type', 64),
        text('live_key', 255, optional),
        text('client_id', 255),
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
        { name: 'usher_webhook_created', columnNames: ['created_at'] },
        { name: 'usher_webhook_retention', columnNames: ['purged_at', 'finished_at'] },
      ],
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
        longText('response_snippet', optional),
      ],
      [{ name: 'usher_webhook_attempt_started', columnNames: ['started_at'] }],
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of [
      'webhook_attempt',
      'webhook',
      'idempotency_key',
      'movie_order',
      'access_token',
      'grant',
      'client_secret',
      'client',
    ]) {
      await runner.dropTable(tablePath(runner, `usher_${name}`));
    }
  }
}
