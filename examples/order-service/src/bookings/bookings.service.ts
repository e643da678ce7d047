import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { OnWebhookEnded, type WebhookEnded, WebhookService } from 'nest-usher';
import { Booking } from './booking.entity.js';

@Injectable()
export class BookingsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly webhooks: WebhookService,
  ) {}

  async open(clientId: string, seats: string, amount: number): Promise<Booking> {
    const { manager } = this.dataSource;
    const reference = randomUUID();
    const booking = manager.create(Booking, { reference, clientId, seats, amount, status: 'OPEN', notified: null });
    await manager.insert(Booking, booking);
    return booking;
  }

  async find(clientId: string, reference: string): Promise<Booking> {
    const booking = await this.dataSource.manager.findOneBy(Booking, { reference, clientId });
    if (!booking) throw new NotFoundException(`there is no booking ${reference}`);
    return booking;
  }

  /**
   * Sells a booking and records its notification in one transaction: both are committed or neither. 409 if `paid` is not
   * the amount of the booking.
   */
  async sell(reference: string, transactionId: string, paid?: number): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const booking = await manager.findOne(Booking, { where: { reference }, lock: { mode: 'pessimistic_write' } });
      if (!booking) throw new NotFoundException(`there is no booking ${reference}`);
      await manager.update(Booking, { reference }, { status: 'SOLD', notified: 'PENDING' });
      const data = {
        key: reference,
        bookingId: reference,
        transactionId,
        currencyCode: 'MYR',
        totalAmount: booking.amount,
        bookingAmount: 0,
        payableAmount: booking.amount,
        status: 'COMPLETED',
      };
      await this.webhooks.notify({ referenceId: reference, clientId: booking.clientId, data }, { manager });
      // Checked last to show that a rollback also removes the notification.
      if (paid !== undefined && paid !== booking.amount)
        throw new ConflictException(`the booking costs ${booking.amount}, not ${paid}`);
    });
  }

  /** Called in the process that delivered. The row in the database informs all others. */
  @OnWebhookEnded()
  async recordEnd({ referenceId: reference, status }: WebhookEnded): Promise<void> {
    await this.dataSource.manager.update(Booking, { reference }, { notified: status });
  }
}
