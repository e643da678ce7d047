import { randomUUID } from 'node:crypto';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ConflictException, Injectable } from '@nestjs/common';
import { Client, OrdersService } from 'nest-usher';
import { Booking } from './booking.entity';
import { NewBooking } from './new-booking.dto';

/** Usher joins the transaction of `@Transactional()` by its option `currentManager`. */
@Injectable()
export class BookingsService {
  constructor(
    private readonly txHost: TransactionHost<TransactionalAdapterTypeOrm>,
    private readonly orders: OrdersService,
  ) {}

  @Transactional()
  async open(client: Client, { seats, amount }: NewBooking): Promise<Booking> {
    const order = { currencyCode: 'MYR', totalAmount: amount, bookingAmount: 0, payableAmount: amount };
    const { key } = await this.orders.create(client, order);
    return this.txHost.tx.save(Booking, { orderKey: key, clientId: client.id, seats, amount, isPaid: false });
  }

  @Transactional()
  async pay({ orderKey, amount }: Booking, paid: number): Promise<void> {
    await this.txHost.tx.update(Booking, { orderKey }, { isPaid: true });
    await this.orders.complete(orderKey, { bookingId: orderKey, transactionId: randomUUID() });
    if (paid !== amount) throw new ConflictException(`the booking costs ${amount}, not ${paid}`);
  }
}
