import { Inject, Injectable, type Logger, type OnApplicationShutdown } from '@nestjs/common';
import { type Job, Worker, type WorkerOptions } from 'bullmq';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { keyPrefix, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';

type Process<T> = (job: Job<T>, token?: string) => Promise<void>;
type Options = Omit<WorkerOptions, 'connection' | 'prefix' | 'autorun' | 'runRetryDelay'>;

const LOCK_MS = 90_000;

/**
 * The workers of this process. Nest's `@Processor` would take the connection of whichever queue of the application has
 * the name: of the host's own `webhook`, say.
 */
@Injectable()
export class Workers implements OnApplicationShutdown {
  private readonly all: Worker[] = [];

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
  ) {}

  /**
   * One that runs, its connection being ready: on Postgres BullMQ remembers a first connection that failed, and a worker
   * that ran by then would spin on that failure for ever.
   */
  async start<T>(queue: string, process: Process<T>, logger: Logger, options: Options = {}): Promise<Worker<T>> {
    const { worker: connection } = this.connections;
    const ours = { connection, prefix: keyPrefix(this.config), autorun: false, runRetryDelay: 2_000 };
    const worker = new Worker<T>(queue, process, { lockDuration: LOCK_MS, ...options, ...ours });
    this.all.push(worker);
    worker.on('error', (error) => logger.warn(`queue: ${error.message}`));
    await worker.waitUntilReady();
    worker.run().catch((error: unknown) => logger.fatal(`this worker has stopped: ${String(error)}`));
    return worker;
  }

  /** Also one whose start failed. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.close()));
  }
}
