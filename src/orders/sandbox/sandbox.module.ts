import { isDeepStrictEqual } from 'node:util';
import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Body, Inject, Injectable, Logger, type OnApplicationBootstrap, Param, Post, Res } from '@nestjs/common';
import { DelayedError, type Job, type Queue } from 'bullmq';
import { ClientController, CurrentClient, CurrentResourceOwner } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { type HttpResponse, RequestActor, RequestId } from '../../http/exchange.js';
import { conflict, notFound, Problem, unavailable, validated } from '../../http/problem.js';
import { PRODUCER, removeLostJob, watchedQueue } from '../../queue/queue.module.js';
import { Workers } from '../../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { parseDuration } from '../../values/duration.js';
import { orderIdOf } from '../../values/identifier.js';
import { type Completion, type OrderView, SandboxCompletion } from '../movie-order.js';
import { effectOfCompletion } from '../movie-order.entity.js';
import { OrdersModule } from '../orders.module.js';
import { OrdersService } from '../orders.service.js';
import { UsherNamedModule } from '../../telemetry/usher-named.js';

export const SANDBOX_QUEUE = 'usher-sandbox-operator';

interface CompletionJob {
  key: string;
  completion: Completion;
  twice: boolean;
  requestId: string;
  actor: Actor;
}

/** The sandbox's cinema operator: completes orders at once or after a delay. */
@Injectable()
export class SandboxOperator {
  private readonly logger = new Logger('Usher sandbox-operator');

  constructor(
    @InjectQueue(SANDBOX_QUEUE) private readonly queue: Queue<CompletionJob>,
    private readonly orders: OrdersService,
  ) {}

  /** Completes an order now. With `twice` it repeats the call, as an operator does after a lost response. */
  async complete({ key, completion, twice, requestId, actor }: CompletionJob): Promise<void> {
    await this.orders.complete(key, completion, { requestId, actor });
    if (twice) await this.orders.complete(key, completion, { requestId, actor });
  }

  /**
   * Completes an order after a delay. An order has one job: a repeated request with equal values changes nothing, one with
   * other values is answered 409. 503 if the queue is down; if the queue is lost, the order stays PENDING.
   */
  async completeIn(delayMs: number, job: CompletionJob): Promise<void> {
    const scheduled = await this.schedule(delayMs, job).catch((error: Error) => {
      this.logger.warn(`the queue did not accept the delayed completion (${error.message})`);
      throw unavailable();
    });
    if (!isDeepStrictEqual(valuesOf(scheduled), valuesOf(job))) throw otherDelayedCompletion();
  }

  /**
   * Returns the order's job: this one, or an earlier one. A finished job is removed, so that it does not prevent a new one.
   */
  private async schedule(delay: number, job: CompletionJob): Promise<CompletionJob> {
    const jobId = orderIdOf(job.key) ?? job.key;
    await removeLostJob(this.queue, jobId);
    await this.queue.add('complete', job, { jobId, delay, removeOnComplete: true, removeOnFail: true });
    return (await this.queue.getJob(jobId))?.data ?? job;
  }
}

const valuesOf = ({ completion, twice }: CompletionJob) => ({ completion, twice });

/** A completion that fails, as while the database is away, is tried again for an hour. */
const RETRY_MS = 2_000;
const RETRIED_MS = 3_600_000;

/** Runs in workers and completes the orders whose delay has ended. */
@Injectable()
export class SandboxOperatorProcessor implements OnApplicationBootstrap {
  private readonly logger = new Logger('Usher sandbox-operator');

  constructor(
    private readonly operator: SandboxOperator,
    private readonly workers: Workers,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    await this.workers.start(SANDBOX_QUEUE, this.process.bind(this), this.logger);
  }

  /** The order may be gone or completed with other values meanwhile; then there is nothing left to do. */
  async process(job: Job<CompletionJob>, token?: string): Promise<void> {
    try {
      await this.operator.complete(job.data);
    } catch (error) {
      if (error instanceof Problem) return this.logger.warn(`a delayed completion has no effect: ${error.detail}`);
      if (Date.now() - job.timestamp > RETRIED_MS) throw error;
      await job.moveToDelayed(Date.now() + RETRY_MS, token);
      throw new DelayedError();
    }
  }
}

export const otherDelayedCompletion = (): Problem =>
  conflict('the order will be completed with other values, as an earlier request with a delay said');

const completedOnlyInSandbox = (): Problem => notFound('clients complete their orders only in the sandbox');

/** Sandbox only: completes the client's own orders as the cinema operator would. */
@ClientController('sandbox/movie-orders')
export class SandboxOrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly operator: SandboxOperator,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** 200 with the COMPLETED order, or 202 with the PENDING order if there is a delay. 404 outside the sandbox. */
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
    if (this.options.environment !== 'sandbox') throw completedOnlyInSandbox();
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

/** The sandbox's cinema operator. */
@UsherNamedModule({
  imports: [OrdersModule, BullModule.registerQueue({ name: SANDBOX_QUEUE, configKey: PRODUCER })],
  providers: [SandboxOperator, watchedQueue(SANDBOX_QUEUE)],
  exports: [SandboxOperator],
})
class SandboxOperatorModule {}

/** The REST route with which a client completes its own orders. */
@UsherNamedModule({ imports: [OrdersModule, SandboxOperatorModule], controllers: [SandboxOrdersController] })
export class SandboxRoutesModule {}

/** Completes the orders whose delay has ended. */
@UsherNamedModule({ imports: [SandboxOperatorModule], providers: [SandboxOperatorProcessor] })
export class SandboxWorkerModule {}
