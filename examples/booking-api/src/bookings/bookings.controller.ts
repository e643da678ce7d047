import {
  Body,
  Controller,
  Get,
  HttpCode,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  UseGuards,
} from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { BearerGuard, Client, CurrentClient } from 'nest-usher';
import { Repository } from 'typeorm';
import { Booking } from './booking.entity';
import { BookingsService } from './bookings.service';
import { NewBooking } from './new-booking.dto';

/** For API clients, with the access tokens that Usher issues. */
@Controller('bookings')
@UseGuards(BearerGuard)
export class BookingsController {
  constructor(
    private readonly service: BookingsService,
    @InjectRepository(Booking) private readonly bookings: Repository<Booking>,
  ) {}

  @Post()
  open(@CurrentClient() client: Client, @Body() booking: NewBooking): Promise<Booking> {
    return this.service.open(client, booking);
  }

  @Get(':orderKey')
  async find(@CurrentClient() client: Client, @Param('orderKey') orderKey: string): Promise<Booking> {
    const booking = await this.bookings.findOneBy({ orderKey, clientId: client.id });
    if (!booking) throw new NotFoundException(`there is no booking ${orderKey}`);
    return booking;
  }

  /** Simulates a payment. */
  @Post(':orderKey/payment')
  @HttpCode(200)
  async pay(
    @CurrentClient() client: Client,
    @Param('orderKey') orderKey: string,
    @Body('amount', ParseIntPipe) amount: number,
  ): Promise<void> {
    await this.service.pay(await this.find(client, orderKey), amount);
  }
}
