import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { BulkJobOptions, Job, Queue } from 'bullmq';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Webhook } from '../webhook.entity.js';
import { MAX_DEFERRAL_INTERVALS } from './host-shares.js';

/** The queue's name in Redis and on the dashboard. */
export const WEBHOOK_QUEUE = 'webhook';
/** The producer's injection token: the queue seen from where jobs are added. */
export const WEBHOOK_PRODUCER = 'usher-webhook-producer';

/** Identifiers only: no payload, no secret. */
export interface DeliveryJob {
  webhook: string;
  reference: string;
  client: string;
  host: string;
}

/** For signing, recording and clocks that differ. */
const MARGIN_MS = 10_000;

/** What became of the job of a row that is overdue. */
export type RestartResult = 'missing' | 'alive' | 'restarted';

export type Deliverable = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'notifyUrl'>;

/** Wakes the workers for a webhook. The database stays the truth: a job that is lost here is found by the retry run. */
@Injectable()
export class DeliveryQueue implements OnApplicationShutdown {
  private readonly logger = new Logger(DeliveryQueue.name);
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    @InjectQueue(WEBHOOK_PRODUCER) private readonly queue: Queue<DeliveryJob>,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Adds the job without waiting; a queue that is down is logged, never the caller's concern. */
  enqueue(webhook: Deliverable, delayMs: number): void {
    const adding = this.add([{ webhook, delayMs }])
      .catch((error: unknown) => {
        this.logger.warn(
          `webhook ${webhook.id} waits for the retry run: the queue took no job (${(error as Error).message})`,
        );
      })
      .finally(() => this.underWay.delete(adding));
    this.underWay.add(adding);
  }

  /** A command, or a server with its last request answered, is done when its jobs are in the queue. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.underWay);
  }

  /** A job that is there already, in whatever state, stays as it is. */
  async add(deliveries: { webhook: Deliverable; delayMs: number }[]): Promise<void> {
    const jobs = deliveries.map(({ webhook, delayMs }) => ({
      name: 'deliver',
      data: jobData(webhook),
      opts: { ...this.jobOptions, jobId: webhook.id, delay: Math.max(0, Math.ceil(delayMs)) },
    }));
    await this.queue.addBulk(jobs);
  }

  /** Whether an overdue webhook's job still runs or soon will; one that is finished is let run again, with all its tries. */
  async revive(webhookId: string): Promise<RestartResult> {
    const job = await this.queue.getJob(webhookId);
    if (!job) return 'missing';
    // Only of finished jobs: to find out where a waiting one stands takes Redis a walk over all that wait.
    if (!job.finishedOn) return job.delay > this.longestDelayMs ? promoted(job) : 'alive';
    const state = await job.getState();
    if (state !== 'completed' && state !== 'failed') return 'alive';
    // Of several at once one wins; the others find it restarted already.
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true }).catch(() => undefined);
    return 'restarted';
  }

  /** That we ever give a job: until a lease is over, or while its host is slow. */
  private get longestDelayMs(): number {
    const { retryEveryMs, timeoutMs, minIntervalMs } = this.options.retry;
    const lease = retryEveryMs + timeoutMs + minIntervalMs;
    return Math.max(lease, MAX_DEFERRAL_INTERVALS * minIntervalMs) + MARGIN_MS;
  }

  private get jobOptions(): BulkJobOptions {
    // By count would halve the speed of BullMQ's Postgres backend.
    const keep = this.options.queue.kind === 'redis' ? { count: 1_000 } : { age: 3_600 };
    return {
      attempts: this.options.retry.maxAttempts,
      backoff: { type: 'custom' },
      removeOnComplete: keep,
      removeOnFail: keep,
    };
  }
}

/** Somebody put it off for longer than we do, on the dashboard. */
async function promoted(job: Job): Promise<'restarted'> {
  await job.promote().catch(() => undefined);
  return 'restarted';
}

function jobData({ id, referenceId, clientId, notifyUrl }: Deliverable): DeliveryJob {
  return { webhook: id, reference: referenceId, client: clientId, host: new URL(notifyUrl).host };
}
