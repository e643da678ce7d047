import { usherEntities, usherMigrations } from 'nest-usher';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { SnakeNamingStrategy } from 'typeorm-naming-strategies';
import { Booking } from '../bookings/booking.entity';
import { Booking1767312000000 } from './1767312000000-booking';

/** The bookings and Usher's tables are in one database, so that both can share a transaction. */
export const dataSourceOptions: DataSourceOptions = {
  type: 'postgres',
  url: process.env.DATABASE_URL,
  namingStrategy: new SnakeNamingStrategy(),
  entities: [Booking, ...usherEntities],
  migrations: [Booking1767312000000, ...usherMigrations],
};

/** For TypeORM's command line. */
export default new DataSource(dataSourceOptions);
