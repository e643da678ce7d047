import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { unavailable } from '../../http/problem.js';
import { Workers } from '../../queue/workers.js';
import type { Completion } from '../movie-order.js';
import { OrdersService } from '../orders.service.js';

export const SANDBOX_QUEUE = 'usher-sandbox-operator';

interface CompletionJob {
  key: string;
  completion: Completion;
  twice: boolean;
  requestId: string;
}

/** The sandbox's cinema operator: completes orders at once or after a delay. */
@Injectable()
export class SandboxOperator {
  private readonly logger = new Logger('sandbox-operator');

  constructor(
    @InjectQueue(SANDBOX_QUEUE) private readonly queue: Queue<CompletionJob>,
    private readonly orders: OrdersService,
  ) {}

  /** Completes an order now. With `twice` it repeats the call, as an operator does after a lost response. */
  async complete({ key, completion, twice, requestId }: CompletionJob): Promise<void> {
    await this.orders.complete(key, completion, { requestId });
    if (twice) await this.orders.complete(key, completion, { requestId });
  }

  /** Completes an order after a delay. 503 if the queue is down; if the queue is lost, the order stays PENDING. */
  async completeIn(delayMs: number, job: CompletionJob): Promise<void> {
    const options = { delay: delayMs, removeOnComplete: true, removeOnFail: { count: 100 } };
    await this.queue.add('complete', job, options).catch((error: Error) => {
      this.logger.warn(`the queue did not accept its job (${error.message})`);
      throw unavailable();
    });
  }
}

/** Runs in workers and completes the orders whose delay has ended. */
@Injectable()
export class SandboxOperatorProcessor implements OnApplicationBootstrap {
  private readonly logger = new Logger('sandbox-operator');

  constructor(
    private readonly operator: SandboxOperator,
    private readonly workers: Workers,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    await this.workers.start(SANDBOX_QUEUE, this.process.bind(this), this.logger);
  }

  async process({ data }: Job<CompletionJob>): Promise<void> {
    await this.operator.complete(data);
  }
}
