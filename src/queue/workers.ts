import { setTimeout as pause } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type Logger } from '@nestjs/common';
import { type Job, Worker, type WorkerOptions } from 'bullmq';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { keyPrefix, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';

type Process<T> = (job: Job<T>, token?: string) => Promise<void>;
type Options = Omit<WorkerOptions, 'connection' | 'prefix' | 'autorun' | 'runRetryDelay'>;

const LOCK_MS = 90_000;
const LOOK_AGAIN_MS = 250;

/** A worker of BullMQ's, and how it ends. */
export class RunningWorker<T = unknown> {
  readonly worker: Worker<T>;
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    queue: string,
    process: Process<T>,
    options: WorkerOptions,
    private readonly probe: QueueConnections['probe'],
  ) {
    this.worker = new Worker<T>(queue, (job, token) => this.run(process(job, token)), options);
  }

  /**
   * Takes no more jobs and lets those under way end. That the queue hears of it is waited for while the queue is there:
   * BullMQ waits for a Redis that is away for ever.
   */
  async close(): Promise<void> {
    let isClosed = false;
    const closing = this.worker.close().finally(() => (isClosed = true));
    while (this.underWay.size > 0) await Promise.allSettled(this.underWay);
    while (!isClosed && (await this.isQueueThere())) await Promise.race([closing, pause(LOOK_AGAIN_MS)]);
  }

  private async run(work: Promise<void>): Promise<void> {
    this.underWay.add(work);
    try {
      await work;
    } finally {
      this.underWay.delete(work);
    }
  }

  private isQueueThere(): Promise<boolean> {
    return this.probe().then(
      () => true,
      () => false,
    );
  }
}

/**
 * The workers of this process. Nest's `@Processor` would take the connection of whichever queue of the application has
 * the name: of the host's own `webhook`, say.
 */
@Injectable()
export class Workers implements BeforeApplicationShutdown {
  readonly all: RunningWorker[] = [];
  /** False in a process that only records; it starts no worker. */
  readonly areEnabled: boolean;

  constructor(
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
  ) {
    this.areEnabled = options.deliver;
  }

  /**
   * One that runs, its connection being ready: on Postgres BullMQ remembers a first connection that failed, and a worker
   * that ran by then would spin on that failure for ever.
   */
  async start<T>(queue: string, process: Process<T>, logger: Logger, options: Options = {}): Promise<Worker<T>> {
    const { worker: connection, probe } = this.connections;
    const ours = { connection, prefix: keyPrefix(this.options), autorun: false, runRetryDelay: 2_000 };
    const running = new RunningWorker<T>(queue, process, { lockDuration: LOCK_MS, ...options, ...ours }, probe);
    this.all.push(running as RunningWorker);
    const { worker } = running;
    worker.on('error', (error) => logger.warn(`queue: ${error.message}`));
    await worker.waitUntilReady();
    worker.run().catch((error: unknown) => logger.fatal(`this worker has stopped: ${String(error)}`));
    return worker;
  }

  /** Also one whose start failed. Global, hence after whatever those who started them do at this step. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.all.map((running) => running.close()));
  }
}
