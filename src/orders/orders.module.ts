import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module.js';
import { ClientsModule } from '../clients/clients.module.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { MovieOrder } from './movie-order.entity.js';
import { InternalOrdersController, MovieOrdersController } from './movie-orders.controller.js';
import { CompletionEvents } from './order-completed.event.js';
import { OrdersService } from './orders.service.js';

/** Creates, reads and completes movie orders; emits `OrderCompleted`. */
@Module({
  // Not global, so that an application's own EventEmitterModule is not replaced. Listeners get the events of both.
  imports: [
    ClientsModule,
    EventEmitterModule.forRoot({ global: false }),
    TypeOrmModule.forFeature([MovieOrder, IdempotencyKey]),
  ],
  providers: [OrdersService, CompletionEvents],
  exports: [OrdersService],
})
export class OrdersModule {}

/** The REST routes of movie orders. */
@Module({ imports: [AuthModule, OrdersModule], controllers: [MovieOrdersController, InternalOrdersController] })
export class OrderRoutesModule {}
