import { Body, Controller, Get, HttpCode, Param, Post, UseGuards } from '@nestjs/common';
import { IsInt, IsOptional, IsPositive, IsString } from 'class-validator';
import { BearerGuard, type Client, CurrentClient } from 'nest-usher';
import { OwnGuard } from '../staff/staff.guard.js';
import type { Booking } from './booking.entity.js';
import { BookingsService } from './bookings.service.js';

class NewBooking {
  @IsString()
  seats: string;

  @IsInt()
  @IsPositive()
  amount: number;
}

class Payment {
  /** Cents. It must be the amount of the booking. */
  @IsInt()
  @IsOptional()
  amount?: number;
}

/** An API client's own bookings. Clients send the access token that Usher issued. */
@Controller('bookings')
@OwnGuard()
@UseGuards(BearerGuard)
export class BookingsController {
  constructor(private readonly bookings: BookingsService) {}

  @Post()
  open(@CurrentClient() client: Client, @Body() { seats, amount }: NewBooking): Promise<Booking> {
    return this.bookings.open(client.id, seats, amount);
  }

  @Get(':reference')
  find(@CurrentClient() client: Client, @Param('reference') reference: string): Promise<Booking> {
    return this.bookings.find(client.id, reference);
  }

  /** Simulates a payment. */
  @Post(':reference/payment')
  @HttpCode(200)
  async pay(
    @CurrentClient() client: Client,
    @Param('reference') reference: string,
    @Body() { amount }: Payment,
  ): Promise<Booking> {
    await this.bookings.find(client.id, reference);
    await this.bookings.sell(reference, `payment-of-${reference}`, amount);
    return this.bookings.find(client.id, reference);
  }
}
