import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { InternalOrdersController, MovieOrdersController } from './movie-orders.controller.js';
import { CompletionEvents } from './order-completed.event.js';
import { OrdersService } from './orders.service.js';

/** Create, get and complete movie orders; emits `OrderCompleted`. */
@Module({
  // Not global: the application keeps its own emitter. Both emitters reach all listeners.
  imports: [EventEmitterModule.forRoot({ global: false })],
  providers: [OrdersService, CompletionEvents],
  exports: [OrdersService],
})
export class OrdersModule {}

/** The REST routes of movie orders. */
@Module({ imports: [OrdersModule], controllers: [MovieOrdersController, InternalOrdersController] })
export class OrderRoutesModule {}
