import {
  Body,
  Controller,
  Get,
  Header,
  Headers,
  HttpCode,
  Inject,
  Injectable,
  Param,
  Post,
  Query,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import {
  ClientController,
  CurrentClient,
  CurrentHolder,
  CurrentResourceOwner,
  type Holder,
} from '../auth/bearer/bearer.guard.js';
import { InternalGuard } from '../auth/client-authentication/internal.guard.js';
import type { Client } from '../clients/client.entity.js';
import { ProblemFilter } from '../http/error-response.js';
import { exactJson, RequestActor, RequestId } from '../http/exchange.js';
import { UsherRoutes } from '../http/oauth-route.js';
import { KNOWN_QUERY, type Problem, TakesQuery, tooManyRequests } from '../http/problem.js';
import { type Limiter, limitKey } from '../limits/limiter.js';
import { Limits } from '../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { PendingLimit } from '../webhooks/pending-limit.js';
import { OrderList } from './list/order-list.js';
import type { OrderPage } from './list/order-list.schemas.js';
import { OrderTotals } from './list/order-totals.js';
import type { Completion, NewOrder, OrderView } from './movie-order.js';
import { OrdersService } from './orders.service.js';

/** Lists and totals of a client's orders. Registered before the routes of single orders, because `totals` is not a key. */
@ClientController('movie-orders')
export class OrderListController {
  constructor(
    private readonly list: OrderList,
    private readonly totals: OrderTotals,
  ) {}

  @Get()
  @TakesQuery()
  page(@CurrentHolder() holder: Holder, @Query() query: unknown): Promise<OrderPage> {
    return this.list.page(holder, query);
  }

  @Get('totals')
  @TakesQuery()
  @Header('Content-Type', 'application/json; charset=utf-8')
  async ofDay(@CurrentHolder() holder: Holder, @Query() query: unknown): Promise<unknown> {
    const totals = await this.totals.of(holder, query);
    const json = exactJson(totals);
    // An interceptor of an application gets an object, unless a number of JavaScript cannot hold a sum.
    return totals.currencies.some(({ payableAmount }) => payableAmount > Number.MAX_SAFE_INTEGER)
      ? json
      : JSON.parse(json);
  }
}

/** Limits how fast a client creates orders over REST, and refuses them while too many of its webhooks are pending. */
@Injectable()
export class OrderLimit {
  private readonly limiter: Limiter | null;

  constructor(
    limits: Limits,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) { orderRateLimit }: ResolvedOptions,
  ) {
    this.limiter = orderRateLimit && limits.limiter('orders', orderRateLimit);
  }

  /** Counts a request. Throws 429 with Retry-After if it exceeds a limit. */
  async count(clientId: string): Promise<void> {
    const wait = this.limiter?.count(limitKey(clientId)) ?? 0;
    if (wait > 0) throw tooManyOrders(wait);
    await this.pending.check(clientId);
  }
}

export const tooManyOrders = (waitSeconds: number): Problem =>
  tooManyRequests('too many new orders; create them more slowly', waitSeconds);

@ClientController('movie-orders')
export class MovieOrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly limit: OrderLimit,
  ) {}

  @Post()
  async create(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<OrderView> {
    await this.limit.count(client.id);
    return this.orders.create(client, body as NewOrder, { ownerId, idempotencyKey, requestId });
  }

  @Get(':key')
  get(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Param('key') key: string,
  ): Promise<OrderView> {
    return this.orders.get(client, key, ownerId);
  }
}

/** The route with which an order service in another process completes orders. */
@Controller('internal/movie-orders')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(InternalGuard, KNOWN_QUERY)
export class InternalOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':key/complete')
  @HttpCode(200)
  complete(
    @Param('key') key: string,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
  ): Promise<OrderView> {
    return this.orders.complete(key, body as Completion, { requestId, actor });
  }
}
