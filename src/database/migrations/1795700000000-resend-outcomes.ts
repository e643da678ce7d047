import { type MigrationInterface, type QueryRunner, Table, TableColumn } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** What a request to resend many webhooks did with each. A table of its own, because `usher_webhook` may be large. */
export class ResendOutcomes1795700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text } = columnsFor(runner);
    const columns = [
      text('resend_id', 22, { isPrimary: true }),
      text('webhook_id', 22, { isPrimary: true }),
      text('refusal', 10, { isNullable: true }),
    ];
    const indices = [{ name: 'usher_resent_webhook_webhook', columnNames: ['webhook_id'] }];
    await runner.createTable(new Table({ name: tablePath(runner, 'usher_resent_webhook'), columns, indices }), true);
    const name = tablePath(runner, 'usher_webhook_resend');
    if (await runner.hasColumn(name, 'is_sent_again')) return;
    const column = new TableColumn({ name: 'is_sent_again', type: 'boolean', isNullable: true });
    await runner.addColumn(new Table({ name }), column);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(tablePath(runner, 'usher_webhook_resend'), 'is_sent_again');
    await runner.dropTable(tablePath(runner, 'usher_resent_webhook'));
  }
}
