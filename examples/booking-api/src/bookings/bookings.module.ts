import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OrdersModule, WebhookModule } from 'nest-usher';
import { Booking } from './booking.entity';
import { BookingsController } from './bookings.controller';
import { BookingsService } from './bookings.service';

@Module({
  imports: [TypeOrmModule.forFeature([Booking]), OrdersModule, WebhookModule],
  controllers: [BookingsController],
  providers: [BookingsService],
})
export class BookingsModule {}
