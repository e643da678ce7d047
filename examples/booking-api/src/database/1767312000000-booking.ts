import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';

export class Booking1767312000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.createTable(
      new Table({
        name: 'booking',
        columns: [
          { name: 'order_key', type: 'varchar', length: '100', isPrimary: true },
          { name: 'client_id', type: 'varchar', length: '255' },
          { name: 'seats', type: 'varchar', length: '200' },
          { name: 'amount', type: 'int' },
          { name: 'is_paid', type: 'boolean' },
        ],
      }),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropTable('booking');
  }
}
