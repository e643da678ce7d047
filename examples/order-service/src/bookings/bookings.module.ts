import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule, WebhookModule } from 'usher';
import { Booking } from './booking.entity.js';
import { BookingTable } from './booking.table.js';
import { BookingsController } from './bookings.controller.js';
import { BookingsService } from './bookings.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([Booking]), AuthModule, WebhookModule],
  providers: [BookingTable, BookingsService],
  controllers: [BookingsController],
})
export class BookingsModule {}
