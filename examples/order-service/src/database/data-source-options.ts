import type { ConfigService } from '@nestjs/config';
import type { DataSourceOptions } from 'typeorm';
import { usherEntities, usherMigrations } from 'nest-usher';
import { Booking } from '../bookings/booking.entity.js';
import { Booking1767312000000 } from './1767312000000-booking.js';

/** The application's default data source. It also holds Usher's tables, so both can share a transaction. */
export function dataSourceOptions(config: ConfigService): DataSourceOptions {
  const url = config.getOrThrow<string>('DATABASE_URL');
  return {
    type: url.startsWith('postgres') ? 'postgres' : 'mariadb',
    url,
    entities: [Booking, ...usherEntities],
    migrations: [Booking1767312000000, ...usherMigrations],
  };
}
