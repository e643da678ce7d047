import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { unavailable } from '../../http/problem.js';
import { Workers } from '../../queue/workers.js';
import type { Completion } from '../movie-order.js';
import { OrdersService } from '../orders.service.js';

export const SANDBOX_QUEUE = 'sandbox-operator';
export const SANDBOX_PRODUCER = 'usher-sandbox-operator-producer';

interface CompletionJob {
  key: string;
  completion: Completion;
  twice: boolean;
  requestId: string;
}

/** The cinema operator of the sandbox, who takes their time. */
@Injectable()
export class SandboxOperator {
  private readonly logger = new Logger('sandbox-operator');

  constructor(
    @InjectQueue(SANDBOX_PRODUCER) private readonly queue: Queue<CompletionJob>,
    private readonly orders: OrdersService,
  ) {}

  /** Confirms an order now; twice, as an operator does whose first answer was lost. */
  async complete({ key, completion, twice, requestId }: CompletionJob): Promise<void> {
    await this.orders.complete(key, completion, requestId);
    if (twice) await this.orders.complete(key, completion, requestId);
  }

  /** The same later; a sandbox whose queue is lost forgets it. 503 where the queue is away. */
  async completeIn(delayMs: number, job: CompletionJob): Promise<void> {
    const options = { delay: delayMs, removeOnComplete: true, removeOnFail: { count: 100 } };
    await this.queue.add('complete', job, options).catch((error: Error) => {
      this.logger.warn(`the queue did not accept its job (${error.message})`);
      throw unavailable();
    });
  }
}

/** In workers: orders whose delay is over. */
@Injectable()
export class SandboxOperatorProcessor implements OnApplicationBootstrap {
  private readonly logger = new Logger('sandbox-operator');

  constructor(
    private readonly operator: SandboxOperator,
    private readonly workers: Workers,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.workers.start(SANDBOX_QUEUE, this.process.bind(this), this.logger);
  }

  async process({ data }: Job<CompletionJob>): Promise<void> {
    await this.operator.complete(data);
  }
}
