import { type MigrationInterface, type QueryRunner, Table, TableColumn } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** What signed each attempt. */
export class SignedWith1795600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const name = tablePath(runner, 'usher_webhook_attempt');
    if (await runner.hasColumn(name, 'signed_with')) return;
    const column = columnsFor(runner).longText('signed_with', { isNullable: true });
    await runner.addColumn(new Table({ name }), new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(tablePath(runner, 'usher_webhook_attempt'), 'signed_with');
  }
}
