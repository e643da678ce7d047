import { type MigrationInterface, type QueryRunner, Table, TableColumn } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** Which alarms of failing hosts have ended, and who acknowledged them. */
export class EndedAlarms1795610000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, wholeNumber } = columnsFor(runner);
    const optional = { isNullable: true };
    const table = new Table({ name: tablePath(runner, 'usher_failing_host') });
    const columns = [
      wholeNumber('alarm_ended_at', optional),
      text('acknowledged_by', 300, optional),
      text('acknowledgement', 500, optional),
      { name: 'is_registered_url', type: 'boolean', ...optional },
    ];
    // One by one: MySQL commits each of them, and a migration that was interrupted goes on.
    for (const column of columns)
      if (!(await runner.hasColumn(table.name, column.name))) await runner.addColumn(table, new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    const names = ['alarm_ended_at', 'acknowledged_by', 'acknowledgement', 'is_registered_url'];
    await runner.dropColumns(tablePath(runner, 'usher_failing_host'), names);
  }
}
