import { Body, Controller, Get, Headers, HttpCode, Param, Post, UseFilters, UseGuards } from '@nestjs/common';
import { BearerGuard, CurrentClient } from '../auth/bearer/bearer.guard.js';
import { InternalGuard } from '../auth/client-authentication/internal.guard.js';
import type { Client } from '../clients/client.entity.js';
import { ProblemFilter } from '../http/error-response.js';
import { UsherRoutes } from '../http/oauth-route.js';
import { RequestId } from '../http/request-id.js';
import type { OrderView } from './movie-order.js';
import { OrdersService } from './orders.service.js';

/** The routes with which clients create and read orders. */
@Controller('movie-orders')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(BearerGuard)
export class MovieOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  create(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<OrderView> {
    return this.orders.create(client, body, { idempotencyKey });
  }

  @Get(':key')
  get(@CurrentClient() client: Client, @Param('key') key: string): Promise<OrderView> {
    return this.orders.get(client, key);
  }
}

/** The route with which an order service in another process completes orders. */
@Controller('internal/movie-orders')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(InternalGuard)
export class InternalOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':key/complete')
  @HttpCode(200)
  complete(@Param('key') key: string, @Body() body: unknown, @RequestId() requestId: string): Promise<OrderView> {
    return this.orders.complete(key, body, { requestId });
  }
}
