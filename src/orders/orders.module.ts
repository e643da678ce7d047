import { EventsModule } from '../events/events.js';
import { OrderCompletions, OrderEvents } from './complete/order-completions.js';
import { OrderList } from './list/order-list.js';
import { OrderTotals } from './list/order-totals.js';
import {
  InternalOrdersController,
  MovieOrdersController,
  OrderLimit,
  OrderListController,
} from './movie-orders.controller.js';
import { OrdersService } from './orders.service.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** Create, get, list and complete movie orders; emits `OrderCompleted`. */
@UsherNamedModule({
  imports: [EventsModule],
  providers: [OrdersService, OrderCompletions, OrderEvents, OrderList, OrderTotals],
  exports: [OrdersService, OrderList, OrderTotals],
})
export class OrdersModule {}

/** The REST routes of movie orders. */
@UsherNamedModule({
  imports: [OrdersModule],
  controllers: [OrderListController, MovieOrdersController, InternalOrdersController],
  providers: [OrderLimit],
})
export class OrderRoutesModule {}
