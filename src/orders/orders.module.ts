import { Module } from '@nestjs/common';
import { EventsModule } from '../events/usher-emitter.js';
import { InternalOrdersController, MovieOrdersController } from './movie-orders.controller.js';
import { CompletionEvents } from './order-completed.event.js';
import { OrdersService } from './orders.service.js';

/** Create, get and complete movie orders; emits `OrderCompleted`. */
@Module({
  imports: [EventsModule],
  providers: [OrdersService, CompletionEvents],
  exports: [OrdersService],
})
export class OrdersModule {}

/** The REST routes of movie orders. */
@Module({ imports: [OrdersModule], controllers: [MovieOrdersController, InternalOrdersController] })
export class OrderRoutesModule {}
