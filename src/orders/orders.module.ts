import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ClientsModule } from '../clients/clients.module.js';
import { CompletionEvents } from './completion-events.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { MovieOrder } from './movie-order.entity.js';
import { OrdersService } from './orders.service.js';

/** Create, get and complete movie orders; emits `OrderCompleted`. */
@Module({
  imports: [ClientsModule, TypeOrmModule.forFeature([MovieOrder, IdempotencyKey])],
  providers: [OrdersService, CompletionEvents],
  exports: [OrdersService],
})
export class OrdersModule {}
