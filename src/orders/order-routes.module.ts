import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { InternalOrdersController, MovieOrdersController } from './movie-orders.controller.js';
import { OrdersModule } from './orders.module.js';

/** The REST routes of movie orders. */
@Module({ imports: [AuthModule, OrdersModule], controllers: [MovieOrdersController, InternalOrdersController] })
export class OrderRoutesModule {}
