import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { entityOf, runStatement, statementFor } from '../../../database/statements/statement.js';
import { MovieOrder } from '../../../orders/movie-order.entity.js';

/** The newest orders of a client. */
@Injectable()
export class RecentOrders {
  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  /** By the index of the list of orders: those that have no position in it yet, then those with the last positions. */
  async of(clientId: string, most: number): Promise<MovieOrder[]> {
    const parts = await Promise.all([this.part(clientId, 'NULL', most), this.part(clientId, 'NOT NULL', most)]);
    return parts
      .flat()
      .sort((left, right) => right.createdAt - left.createdAt)
      .slice(0, most);
  }

  private async part(clientId: string, position: 'NULL' | 'NOT NULL', most: number): Promise<MovieOrder[]> {
    const isPostgres = this.dataSource.options.type === 'postgres';
    const table = tableOf(this.dataSource, MovieOrder);
    // Postgres reads the index in its order only if its columns are named; MySQL only if what is equal is not.
    const order = isPostgres || position === 'NOT NULL' ? 'list_position DESC, id DESC' : 'id DESC';
    const statement = statementFor(
      this.dataSource,
      (parameter) => `
        SELECT * FROM ${table} ${isPostgres ? '' : 'FORCE INDEX (usher_movie_order_list)'}
        WHERE client_id = ${parameter(clientId)} AND list_position IS ${position}
        ORDER BY ${order} LIMIT ${most}`,
    );
    const { rows } = await runStatement(this.dataSource, statement);
    return rows.map((row) => entityOf(this.dataSource, MovieOrder, row));
  }
}
