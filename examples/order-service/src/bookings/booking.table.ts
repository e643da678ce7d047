import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { type DataSource, Table } from 'typeorm';

/** Creates the table if it is missing. A larger application has its own migrations; Usher's change only `usher_*`. */
@Injectable()
export class BookingTable implements OnModuleInit {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async onModuleInit(): Promise<void> {
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.createTable(bookings, true);
    } finally {
      await runner.release();
    }
  }
}

const bookings = new Table({
  name: 'booking',
  columns: [
    { name: 'reference', type: 'varchar', length: '40', isPrimary: true },
    { name: 'client_id', type: 'varchar', length: '255' },
    { name: 'seats', type: 'varchar', length: '200' },
    { name: 'amount', type: 'int' },
    { name: 'status', type: 'varchar', length: '10' },
    { name: 'notified', type: 'varchar', length: '10', isNullable: true },
  ],
});
