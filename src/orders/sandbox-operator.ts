import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { unavailable } from '../http/problem.js';
import { WORKER } from '../queue/queue.module.js';
import { startWorker } from '../queue/start-worker.js';
import type { Completion } from './movie-order.js';
import { OrdersService } from './orders.service.js';

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
      this.logger.warn(`the queue took no job (${error.message})`);
      throw unavailable('the service is busy or starting; try again');
    });
  }
}

/** In workers: orders whose delay is over. */
@Injectable()
@Processor({ name: SANDBOX_QUEUE, configKey: WORKER }, { autorun: false, lockDuration: 90_000, runRetryDelay: 2_000 })
export class SandboxOperatorProcessor extends WorkerHost implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('sandbox-operator');
  private isRunning = false;

  constructor(private readonly operator: SandboxOperator) {
    super();
  }

  async onApplicationBootstrap(): Promise<void> {
    await startWorker(this.worker, this.logger);
    this.isRunning = true;
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.isRunning) await this.worker.close();
  }

  async process({ data }: Job<CompletionJob>): Promise<void> {
    await this.operator.complete(data);
  }
}
