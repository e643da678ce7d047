import { type MigrationInterface, type QueryRunner, Table, TableColumn } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** Which master keys each process has. */
export class ProcessKeys1795500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const name = tablePath(runner, 'usher_process');
    if (await runner.hasColumn(name, 'key_ids')) return;
    // Does not read the table, which does not exist yet where the SQL of all migrations is only printed.
    const column = columnsFor(runner).longText('key_ids', { isNullable: true });
    await runner.addColumn(new Table({ name }), new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(tablePath(runner, 'usher_process'), 'key_ids');
  }
}
