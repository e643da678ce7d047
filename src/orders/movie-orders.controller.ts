import { Body, Controller, Get, Headers, HttpCode, Param, Post, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { BearerGuard, CurrentClient } from '../auth/bearer.guard.js';
import { InternalGuard } from '../auth/internal.guard.js';
import type { Client } from '../clients/client.entity.js';
import { parseDuration } from '../core/duration.js';
import { RequestId } from '../http/request-id.js';
import { validated } from '../http/validated.js';
import { type OrderView, SandboxCompletion } from './movie-order.js';
import { OrdersService } from './orders.service.js';
import { SandboxOperator } from './sandbox-operator.js';

/** The client's side: create-movie-order. */
@Controller('movie-orders')
@UseGuards(BearerGuard)
export class MovieOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  create(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<OrderView> {
    return this.orders.create(client, body, idempotencyKey);
  }

  @Get(':key')
  get(@CurrentClient() client: Client, @Param('key') key: string): Promise<OrderView> {
    return this.orders.get(client, key);
  }
}

/** Sandbox only: plays the cinema operator, for the client's own orders. */
@Controller('sandbox/movie-orders')
@UseGuards(BearerGuard)
export class SandboxOrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly operator: SandboxOperator,
  ) {}

  /** 200 with the order COMPLETED; 202 with the order as it is, where the operator is to take their time. */
  @Post(':key/complete')
  async complete(
    @CurrentClient() client: Client,
    @Param('key') key: string,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OrderView> {
    const { status } = await this.orders.get(client, key);
    const { delay, twice = false, ...completion } = validated(SandboxCompletion, body);
    const delayMs = delay === undefined ? 0 : (parseDuration(delay) ?? 0);
    const isLater = delayMs > 0 && status === 'PENDING';
    const job = { key, completion, twice, requestId };
    if (isLater) await this.operator.completeIn(delayMs, job);
    else await this.operator.complete(job);
    reply.status(isLater ? 202 : 200);
    return this.orders.get(client, key);
  }
}

/** For an order service in another process. */
@Controller('internal/movie-orders')
@UseGuards(InternalGuard)
export class InternalOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':key/complete')
  @HttpCode(200)
  complete(@Param('key') key: string, @Body() body: unknown, @RequestId() requestId: string): Promise<OrderView> {
    return this.orders.complete(key, body, requestId);
  }
}
