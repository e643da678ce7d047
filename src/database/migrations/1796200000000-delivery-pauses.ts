import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** Whose deliveries are paused. */
export class DeliveryPauses1796200000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, wholeNumber } = columnsFor(runner);
    const columns = [
      text('subject', 300, { isPrimary: true }),
      wholeNumber('since', { isPrimary: true }),
      text('reason', 500),
      wholeNumber('resumed_at', { isNullable: true }),
    ];
    await runner.createTable(new Table({ name: tablePath(runner, 'usher_delivery_pause'), columns }), true);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropTable(tablePath(runner, 'usher_delivery_pause'));
  }
}
