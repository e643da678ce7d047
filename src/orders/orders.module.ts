import { Module } from '@nestjs/common';
import { EventsModule } from '../events/usher-emitter.js';
import { InternalOrdersController, MovieOrdersController } from './movie-orders.controller.js';
import { OrderEvents } from './order-events.js';
import { OrderLimit } from './order-limit.js';
import { OrdersService } from './orders.service.js';

/** Create, get and complete movie orders; emits `OrderCompleted`. */
@Module({
  imports: [EventsModule],
  providers: [OrdersService, OrderEvents],
  exports: [OrdersService],
})
export class OrdersModule {}

/** The REST routes of movie orders. */
@Module({
  imports: [OrdersModule],
  controllers: [MovieOrdersController, InternalOrdersController],
  providers: [OrderLimit],
})
export class OrderRoutesModule {}
