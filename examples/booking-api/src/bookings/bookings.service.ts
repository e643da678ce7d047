import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable } from '@nestjs/common';
import { type Client, OrdersService } from 'nest-usher';
import { DataSource } from 'typeorm';
import { Booking } from './booking.entity';
import type { NewBooking } from './new-booking.dto';

/** Each method is one transaction, which Usher joins by its entity manager. */
@Injectable()
export class BookingsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly orders: OrdersService,
  ) {}

  open(client: Client, { seats, amount }: NewBooking): Promise<Booking> {
    return this.dataSource.transaction(async (manager) => {
      const order = { currencyCode: 'MYR', totalAmount: amount, bookingAmount: 0, payableAmount: amount };
      const { key } = await this.orders.create(client, order, { manager });
      return manager.save(Booking, { orderKey: key, clientId: client.id, seats, amount, isPaid: false });
    });
  }

  /** The booking is paid, its order is completed, and its client is notified: all of it or nothing. */
  async pay({ orderKey, amount }: Booking, paid: number): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.update(Booking, { orderKey }, { isPaid: true });
      await this.orders.complete(orderKey, { bookingId: orderKey, transactionId: randomUUID() }, { manager });
      // Last, to show that a rollback undoes everything.
      if (paid !== amount) throw new ConflictException(`the booking costs ${amount}, not ${paid}`);
    });
  }
}
