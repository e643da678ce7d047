import { Injectable, Module } from '@nestjs/common';
import { z } from 'zod';
import { moment, named } from '../../http/operation.js';

export const OrderDelivery = z
  .object({
    webhookId: z.string(),
    status: z.enum(['PENDING', 'SUCCESS', 'FAILED']),
    attempts: z.int().meta({ description: 'The number of attempts made.' }),
    finishedAt: moment.nullable(),
  })
  .register(named, { id: 'OrderDelivery' });
/** What became of an order's notification: the one that is pending or delivered, else the last one that failed. */
export type OrderDelivery = z.infer<typeof OrderDelivery>;

/** Finds the notifications of a client's orders, by the orders' keys. */
export type DeliveryLookUp = (clientId: string, keys: string[]) => Promise<Map<string, OrderDelivery>>;

/** Tells what became of orders' notifications. WebhookModule knows it, and this room does not know webhooks. */
@Injectable()
export class OrderDeliveries {
  private lookUp: DeliveryLookUp = () => Promise.resolve(new Map());

  lookUpWith(lookUp: DeliveryLookUp): void {
    this.lookUp = lookUp;
  }

  /** By key. An order without a notification is missing. */
  async of(clientId: string, keys: string[]): Promise<Map<string, OrderDelivery>> {
    return keys.length === 0 ? new Map<string, OrderDelivery>() : this.lookUp(clientId, keys);
  }
}

/** A module of its own, because WebhookModule works without OrdersModule. */
@Module({ providers: [OrderDeliveries], exports: [OrderDeliveries] })
export class OrderDeliveriesModule {}
