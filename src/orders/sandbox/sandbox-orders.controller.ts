import { Body, Param, Post, Res } from '@nestjs/common';
import { type HttpResponse, RequestActor, RequestId } from '../../http/exchange.js';
import { ClientController, CurrentClient, CurrentResourceOwner } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { validated } from '../../http/problem.js';
import type { Actor } from '../../values/actor.js';
import { parseDuration } from '../../values/duration.js';
import { type OrderView, SandboxCompletion } from '../movie-order.js';
import { effectOfCompletion } from '../movie-order.entity.js';
import { OrdersService } from '../orders.service.js';
import { SandboxOperator } from './sandbox-operator.js';

/** Sandbox only: completes the client's own orders as the cinema operator would. */
@ClientController('sandbox/movie-orders')
export class SandboxOrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly operator: SandboxOperator,
  ) {}

  /** 200 with the COMPLETED order, or 202 with the PENDING order if there is a delay. */
  @Post(':key/complete')
  async complete(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Param('key') key: string,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Res({ passthrough: true }) response: HttpResponse,
  ): Promise<OrderView> {
    const { status } = await this.orders.get(client, key, ownerId);
    const { delay, twice = false, ...completion } = validated(SandboxCompletion, body);
    const delayMs = delay === undefined ? 0 : (parseDuration(delay) ?? 0);
    const isLater = delayMs > 0 && effectOfCompletion(status) === 'change';
    const job = { key, completion, twice, requestId, actor };
    if (isLater) await this.operator.completeIn(delayMs, job);
    else await this.operator.complete(job);
    response.status(isLater ? 202 : 200);
    return this.orders.get(client, key, ownerId);
  }
}
