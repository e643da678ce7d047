import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { BulkJobOptions, Job, Queue } from 'bullmq';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Webhook } from '../webhook.entity.js';
import { MAX_DEFERRAL_INTERVALS } from './host-shares.js';

/** The queue's name in Redis and on the dashboard. */
export const WEBHOOK_QUEUE = 'usher-webhook';

/** Identifiers only: no payload, no secret. */
export interface DeliveryJob {
  webhook: string;
  reference: string;
  client: string;
  host: string;
}

/** Time for signing, for recording and for clock differences. */
const MARGIN_MS = 10_000;

/** What was done with the job of an overdue row. */
export type RestartResult = 'missing' | 'not-needed' | 'restarted';

export type Deliverable = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'notifyUrl'>;

/** Adds delivery jobs. A lost job only delays its webhook: the retry run finds the row in the database. */
@Injectable()
export class DeliveryQueue implements OnApplicationShutdown {
  private readonly logger = new Logger(DeliveryQueue.name);
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    @InjectQueue(WEBHOOK_QUEUE) private readonly queue: Queue<DeliveryJob>,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Adds the job without waiting. If the queue is down, this is logged and the caller gets no error. */
  enqueue(webhook: Deliverable, delayMs: number): void {
    const adding = this.add([{ webhook, delayMs }])
      .catch((error: unknown) => {
        this.logger.warn(
          `webhook ${webhook.id} waits for the retry run: the queue did not accept its job (${(error as Error).message})`,
        );
      })
      .finally(() => this.underWay.delete(adding));
    this.underWay.add(adding);
  }

  /** The process must not exit before its jobs are in the queue. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.underWay);
  }

  /** A job that already exists is not changed, whatever its state. */
  async add(deliveries: { webhook: Deliverable; delayMs: number }[]): Promise<void> {
    const jobs = deliveries.map(({ webhook, delayMs }) => ({
      name: 'deliver',
      data: jobData(webhook),
      opts: { ...this.jobOptions, jobId: webhook.id, delay: Math.max(0, Math.ceil(delayMs)) },
    }));
    await this.queue.addBulk(jobs);
  }

  /** Restarts a finished job of an overdue webhook, with all its attempts. A job that runs or waits is left alone. */
  async restart(webhookId: string): Promise<RestartResult> {
    const job = await this.queue.getJob(webhookId);
    if (!job) return 'missing';
    // getState is only called for finished jobs: for a waiting job, Redis would have to search the whole list.
    if (!job.finishedOn) return job.delay > this.maxDelayMs ? promoted(job) : 'not-needed';
    const state = await job.getState();
    if (state !== 'completed' && state !== 'failed') return 'not-needed';
    // Of several concurrent calls one succeeds; for the others the job is already restarted.
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true }).catch(() => undefined);
    return 'restarted';
  }

  /** The longest delay that Usher gives a job: until the end of a lease, or while its host is slow. */
  private get maxDelayMs(): number {
    const { retryEveryMs, timeoutMs, minIntervalMs } = this.options.retry;
    const lease = retryEveryMs + timeoutMs + minIntervalMs;
    return Math.max(lease, MAX_DEFERRAL_INTERVALS * minIntervalMs) + MARGIN_MS;
  }

  private get jobOptions(): BulkJobOptions {
    // On Postgres jobs are kept by age, because a limit by count makes BullMQ's Postgres backend half as fast.
    const keep = this.options.queue.kind === 'redis' ? { count: 1_000 } : { age: 3_600 };
    return {
      attempts: this.options.retry.maxAttempts,
      backoff: { type: 'custom' },
      removeOnComplete: keep,
      removeOnFail: keep,
    };
  }
}

/** Runs a job now that was delayed on the dashboard for longer than Usher ever does. */
async function promoted(job: Job): Promise<'restarted'> {
  await job.promote().catch(() => undefined);
  return 'restarted';
}

function jobData({ id, referenceId, clientId, notifyUrl }: Deliverable): DeliveryJob {
  return { webhook: id, reference: referenceId, client: clientId, host: new URL(notifyUrl).host };
}
