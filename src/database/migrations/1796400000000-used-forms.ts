import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** The forms of the console that were sent. */
export class UsedForms1796400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, wholeNumber } = columnsFor(runner);
    const columns = [text('digest', 43, { isPrimary: true }), wholeNumber('expires_at')];
    const indices = [{ name: 'usher_used_form_expiry', columnNames: ['expires_at'] }];
    await runner.createTable(new Table({ name: tablePath(runner, 'usher_used_form'), columns, indices }), true);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropTable(tablePath(runner, 'usher_used_form'));
  }
}
