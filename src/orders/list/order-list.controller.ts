import { Controller, Get, Header, Query, UseFilters, UseGuards } from '@nestjs/common';
import { BearerGuard, CurrentClient, CurrentResourceOwner } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { ProblemFilter } from '../../http/error-response.js';
import { exactJson } from '../../http/exchange.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { KNOWN_QUERY, TakesQuery } from '../../http/problem.js';
import { OrderList } from './order-list.js';
import type { OrderPage } from './order-list.schemas.js';
import { OrderTotals } from './order-totals.js';

/** A client's orders, to compare them with what it knows. Before the routes of single orders: `totals` is no key. */
@Controller('movie-orders')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(BearerGuard, KNOWN_QUERY)
export class OrderListController {
  constructor(
    private readonly list: OrderList,
    private readonly totals: OrderTotals,
  ) {}

  @Get()
  @TakesQuery()
  page(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Query() query: unknown,
  ): Promise<OrderPage> {
    return this.list.page({ clientId: client.id, ownerId }, query);
  }

  @Get('totals')
  @TakesQuery()
  @Header('Content-Type', 'application/json; charset=utf-8')
  async ofDay(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Query() query: unknown,
  ): Promise<string> {
    return exactJson(await this.totals.of({ clientId: client.id, ownerId }, query));
  }
}
