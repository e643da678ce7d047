import { setTimeout as pause } from 'node:timers/promises';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { type Job, Worker, type WorkerOptions } from 'bullmq';
import { telemetryOption } from '../telemetry/tracing.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { keyPrefix, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';
import { queueWarnings } from './repeated-warnings.js';

/** What it resolves to is kept as the job's result. */
type Process<T> = (job: Job<T>, token?: string) => Promise<unknown>;

const LOCK_MS = 90_000;
/** How long an idle worker waits for a job in one command of Redis, where every job that is added or due ends the wait. */
const IDLE_WAIT_SECONDS = 20;
const PROBE_EVERY_MS = 250;
/** After a failover, BullMQ may wait for an answer that never comes, although the queue is reachable again. */
const CLOSE_LIMIT_MS = 10_000;
/** Time for an application that calls enableShutdownHooks() only after it has started. */
const HOOKS_EXPECTED_AFTER_MS = 5_000;

interface Running {
  worker: Worker;
  jobs: Set<Promise<unknown>>;
}

/**
 * Starts the workers of this process, in place of Nest's `@Processor`. A decorator's options are class metadata, but
 * ours come from the configuration. Worker.close() never ends while Redis is away, so shutdown needs its own close().
 * A host application may use `manualRegistration`, which would leave `@Processor` workers unstarted.
 */
@Injectable()
export class Workers implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly all: Running[] = [];
  private hooksTimer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
  ) {}

  /** False in a process that only records; it starts no worker. */
  get areEnabled(): boolean {
    return this.options.deliver;
  }

  /**
   * Starts a worker once its connection is ready. On Postgres, BullMQ remembers a first connection that failed, and a
   * worker that was already running would retry that failure in a busy loop.
   */
  async start<T>(
    queue: string,
    process: Process<T>,
    logger: Logger,
    options: Partial<WorkerOptions> = {},
  ): Promise<Worker<T>> {
    const jobs = new Set<Promise<unknown>>();
    const run: Process<T> = (job, token) => {
      const work = process(job, token);
      jobs.add(work);
      return work.finally(() => jobs.delete(work));
    };
    const { worker: connection, redis } = this.connections;
    const worker = new Worker<T>(queue, run, {
      lockDuration: LOCK_MS,
      ...options,
      connection,
      prefix: keyPrefix(this.options),
      autorun: false,
      runRetryDelay: 2_000,
      ...(redis && { drainDelay: IDLE_WAIT_SECONDS }),
      ...telemetryOption(),
    });
    this.all.push({ worker: worker as Worker, jobs });
    worker.on('error', (error) => queueWarnings.warn(error.message));
    await worker.waitUntilReady();
    worker.run().catch((error: unknown) => logger.fatal(`the worker has stopped: ${String(error)}`));
    return worker;
  }

  onApplicationBootstrap(): void {
    if (this.areEnabled) this.hooksTimer = setTimeout(warnWithoutHooks, HOOKS_EXPECTED_AFTER_MS).unref();
  }

  /** Closes every worker, also one whose start failed. Workers is global, so Nest calls this after other modules' hooks. */
  async beforeApplicationShutdown(): Promise<void> {
    clearTimeout(this.hooksTimer);
    await Promise.all(this.all.map((running) => this.close(running)));
  }

  /**
   * Takes no more jobs and waits for the running ones. Then waits for BullMQ to close, for a short time and only while the
   * queue is reachable: Worker.close() never ends while Redis is away.
   */
  private async close({ worker, jobs }: Running): Promise<void> {
    const isQueueReachable = (): Promise<boolean> =>
      this.connections.probe().then(
        () => true,
        () => false,
      );
    let isClosed = false;
    const closing = worker.close().finally(() => (isClosed = true));
    while (jobs.size > 0) await Promise.allSettled(jobs);
    const limit = performance.now() + CLOSE_LIMIT_MS;
    while (!isClosed && performance.now() < limit && (await isQueueReachable()))
      await Promise.race([closing, pause(PROBE_EVERY_MS)]);
  }
}

function warnWithoutHooks(): void {
  if (process.listenerCount('SIGTERM') > 0) return;
  new Logger('Usher').warn(
    'SIGTERM would end this process in the middle of its attempts, and each counts as made; call app.enableShutdownHooks()',
  );
}
