import { setTimeout as pause } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type Logger } from '@nestjs/common';
import { type Job, Worker, type WorkerOptions } from 'bullmq';
import { telemetryOption } from '../telemetry/tracing.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { keyPrefix, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';
import { queueWarnings } from './repeated-warnings.js';

/** What it resolves to is kept as the job's result. */
type Process<T> = (job: Job<T>, token?: string) => Promise<unknown>;
type Options = Omit<WorkerOptions, 'connection' | 'prefix' | 'autorun' | 'runRetryDelay' | 'drainDelay'>;

const LOCK_MS = 90_000;
/** How long an idle worker waits for a job in one command of Redis, where every job that is added or due ends the wait. */
const IDLE_WAIT_SECONDS = 20;
const PROBE_EVERY_MS = 250;

/** A BullMQ worker, and how to close it. */
export class RunningWorker<T = unknown> {
  readonly worker: Worker<T>;
  private readonly running = new Set<Promise<unknown>>();

  constructor(
    queue: string,
    process: Process<T>,
    options: WorkerOptions,
    private readonly probe: QueueConnections['probe'],
  ) {
    this.worker = new Worker<T>(queue, (job, token) => this.run(process(job, token)), options);
  }

  /**
   * Takes no more jobs and waits for the running ones. Then waits for BullMQ to close, but only while the queue is
   * reachable: Worker.close() never ends while Redis is away.
   */
  async close(): Promise<void> {
    let isClosed = false;
    const closing = this.worker.close().finally(() => (isClosed = true));
    while (this.running.size > 0) await Promise.allSettled(this.running);
    while (!isClosed && (await this.isQueueReachable())) await Promise.race([closing, pause(PROBE_EVERY_MS)]);
  }

  private async run(work: Promise<unknown>): Promise<unknown> {
    this.running.add(work);
    try {
      return await work;
    } finally {
      this.running.delete(work);
    }
  }

  private isQueueReachable(): Promise<boolean> {
    return this.probe().then(
      () => true,
      () => false,
    );
  }
}

/**
 * Starts the workers of this process, in place of Nest's `@Processor`. A decorator's options are class metadata, but
 * ours come from the configuration. Worker.close() never ends while Redis is away, so shutdown needs {@link
 * RunningWorker.close}. A host application may use `manualRegistration`, which would leave `@Processor` workers unstarted.
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
   * Starts a worker once its connection is ready. On Postgres, BullMQ remembers a first connection that failed, and a
   * worker that was already running would retry that failure in a busy loop.
   */
  async start<T>(queue: string, process: Process<T>, logger: Logger, options: Options = {}): Promise<Worker<T>> {
    const { worker: connection, redis, probe } = this.connections;
    const prefix = keyPrefix(this.options);
    const idle = redis && { drainDelay: IDLE_WAIT_SECONDS };
    const fixed = { connection, prefix, autorun: false, runRetryDelay: 2_000, ...idle, ...telemetryOption() };
    const running = new RunningWorker<T>(queue, process, { lockDuration: LOCK_MS, ...options, ...fixed }, probe);
    this.all.push(running as RunningWorker);
    const { worker } = running;
    worker.on('error', (error) => queueWarnings.warn(error.message));
    await worker.waitUntilReady();
    worker.run().catch((error: unknown) => logger.fatal(`the worker has stopped: ${String(error)}`));
    return worker;
  }

  /** Closes every worker, also one whose start failed. Workers is global, so Nest calls this after other modules' hooks. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.all.map((running) => running.close()));
  }
}
