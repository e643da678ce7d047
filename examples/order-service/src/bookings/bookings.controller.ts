import { Body, Controller, Get, Param, Post, UseGuards } from '@nestjs/common';
import { BearerGuard, type Client, CurrentClient } from 'usher';
import type { Booking } from './booking.entity.js';
import { BookingsService } from './bookings.service.js';

/** The bookings of the API client that the access token belongs to. */
@Controller('bookings')
@UseGuards(BearerGuard)
export class BookingsController {
  constructor(private readonly bookings: BookingsService) {}

  @Post()
  open(
    @CurrentClient() client: Client,
    @Body() { seats, amount }: { seats: string; amount: number },
  ): Promise<Booking> {
    return this.bookings.open(client.id, seats, amount);
  }

  @Get(':reference')
  find(@CurrentClient() client: Client, @Param('reference') reference: string): Promise<Booking> {
    return this.bookings.find(client.id, reference);
  }

  /** Simulates a successful payment. */
  @Post(':reference/payment')
  async pay(@CurrentClient() client: Client, @Param('reference') reference: string): Promise<Booking> {
    await this.bookings.find(client.id, reference);
    await this.bookings.sell(reference, `payment-of-${reference}`);
    return this.bookings.find(client.id, reference);
  }
}
