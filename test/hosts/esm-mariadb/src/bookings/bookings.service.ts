import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Client, OrdersService } from 'nest-usher';
import { Repository } from 'typeorm';
import { Transactional } from 'typeorm-transactional';
import { Booking } from './booking.entity.js';
import { NewBooking } from './new-booking.dto.js';

/** Usher joins the transaction of `@Transactional()` without a manager. */
@Injectable()
export class BookingsService {
  constructor(
    @InjectRepository(Booking) private readonly bookings: Repository<Booking>,
    private readonly orders: OrdersService,
  ) {}

  @Transactional()
  async open(client: Client, { seats, amount }: NewBooking): Promise<Booking> {
    const order = { currencyCode: 'MYR', totalAmount: amount, bookingAmount: 0, payableAmount: amount };
    const { key } = await this.orders.create(client, order);
    return this.bookings.save({ orderKey: key, clientId: client.id, seats, amount, isPaid: false });
  }

  @Transactional()
  async pay({ orderKey, amount }: Booking, paid: number): Promise<void> {
    await this.bookings.update({ orderKey }, { isPaid: true });
    await this.orders.complete(orderKey, { bookingId: orderKey, transactionId: randomUUID() });
    if (paid !== amount) throw new ConflictException(`the booking costs ${amount}, not ${paid}`);
  }
}
