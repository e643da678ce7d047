import { randomUUID } from 'node:crypto';
import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { OnWebhookEnded, type WebhookEnded, WebhookService } from 'usher';
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

  /** Records the sale and its notification in one transaction, so both exist or neither. */
  async sell(reference: string, transactionId: string): Promise<void> {
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
    });
  }

  /** Called in the process that delivered; other processes read the status from the database. */
  @OnWebhookEnded()
  async recordEnd({ referenceId: reference, status }: WebhookEnded): Promise<void> {
    await this.dataSource.manager.update(Booking, { reference }, { notified: status });
  }
}
