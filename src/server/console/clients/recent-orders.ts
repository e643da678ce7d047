import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
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
    const { byIndex, orderBy } = dialectOf(this.dataSource);
    const table = tableOf(this.dataSource, MovieOrder);
    const isEqual = position === 'NULL';
    const order = isEqual ? orderBy(['list_position DESC'], ['id DESC']) : ['list_position DESC', 'id DESC'];
    const statement = statementFor(
      this.dataSource,
      (parameter) => `
        SELECT * FROM ${table} ${byIndex('usher_movie_order_list')}
        WHERE client_id = ${parameter(clientId)} AND list_position IS ${position}
        ORDER BY ${order.join(', ')} LIMIT ${most}`,
    );
    const { rows } = await runStatement(this.dataSource, statement);
    return rows.map((row) => entityOf(this.dataSource, MovieOrder, row));
  }
}
