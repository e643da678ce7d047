import { type MigrationInterface, type QueryRunner, Table, TableIndex } from 'typeorm';
import { tablePath } from './column-types.js';

const INDEXES = {
  usher_movie_order: {
    usher_movie_order_booking: ['booking_id'],
    usher_movie_order_transaction: ['transaction_id'],
  },
  usher_consent: { usher_consent_client: ['client_id', 'given_at'] },
};

/** What operators look for: orders by booking and transaction, members by the client that acts for them. */
export class SearchIndexes1796300000000 implements MigrationInterface {
  up(runner: QueryRunner): Promise<void> {
    return forEach((table, index) => runner.createIndex(new Table({ name: tablePath(runner, table) }), index));
  }

  down(runner: QueryRunner): Promise<void> {
    return forEach((table, index) => runner.dropIndex(new Table({ name: tablePath(runner, table) }), index));
  }
}

async function forEach(change: (table: string, index: TableIndex) => Promise<void>): Promise<void> {
  for (const [table, indexes] of Object.entries(INDEXES))
    for (const [name, columnNames] of Object.entries(indexes))
      await change(table, new TableIndex({ name, columnNames }));
}
