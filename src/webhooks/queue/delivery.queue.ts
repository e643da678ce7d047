import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { BulkJobOptions, Queue } from 'bullmq';
import { queueWarnings } from '../../queue/repeated-warnings.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { longestWaitMs, type RetryPolicy } from '../../values/retry-schedule.js';
import type { Webhook } from '../webhook.entity.js';
import { MAX_DEFERRAL_INTERVALS } from './deferral-schedule.js';

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

/** How many jobs are looked up or removed at a time. Low, so that the deliveries of this process are not delayed. */
const FEW = 10;
const MAX_ADDED_AT_ONCE = 64;
/** While the queue does not answer, further webhooks wait for the retry run, so that they do not fill the memory. */
const MAX_WAITING = 10_000;

/** With more waiting jobs, a search for each overdue one would keep Redis busy for too long. */
const MAX_SEARCHED = 1_000;

/** What was done with the job of an overdue row. */
export type RestartResult = 'missing' | 'not-needed' | 'restarted';

export type Deliverable = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'notifyUrl'>;

/** Adds delivery jobs. A lost job only delays its webhook: the retry run finds the row in the database. */
@Injectable()
export class DeliveryQueue implements OnApplicationShutdown {
  private waiting: { webhook: Deliverable; delayMs: number }[] = [];
  private adding: Promise<void> | null = null;

  private readonly jobOptions: BulkJobOptions;
  private readonly maxDelayMs: number;
  private readonly isOnRedis: boolean;

  constructor(
    @InjectQueue(WEBHOOK_QUEUE) private readonly queue: Queue<DeliveryJob>,
    @Inject(USHER_OPTIONS) { queue: { kind }, retry }: ResolvedOptions,
  ) {
    this.isOnRedis = kind === 'redis';
    // On Postgres jobs are kept by age, because a limit by count makes BullMQ's Postgres backend half as fast.
    const keep = this.isOnRedis ? { count: 1_000 } : { age: 3_600 };
    const backoff = { type: 'custom' };
    this.jobOptions = { attempts: retry.maxAttempts, backoff, removeOnComplete: keep, removeOnFail: keep };
    this.maxDelayMs = maxDelayMs(retry);
  }

  /**
   * Adds the job without waiting, together with others of this moment. If the queue is down, this is logged and the caller
   * gets no error.
   */
  enqueue(webhook: Deliverable, delayMs: number): void {
    if (this.waiting.length < MAX_WAITING) this.waiting.push({ webhook, delayMs });
    this.adding ??= this.addWaiting();
  }

  /** The process must not exit before its jobs are in the queue. */
  async onApplicationShutdown(): Promise<void> {
    await this.adding;
  }

  private async addWaiting(): Promise<void> {
    // Waits for the other jobs of the same commit, but not until their requests are answered.
    await Promise.resolve();
    while (this.waiting.length > 0) {
      const deliveries = this.waiting.splice(0, MAX_ADDED_AT_ONCE);
      await this.add(deliveries).catch((error: Error) => {
        const reason = `waits for the retry run: the queue did not accept its job (${error.message})`;
        for (const { webhook } of deliveries) queueWarnings.warn(`webhook ${webhook.id} ${reason}`);
      });
    }
    // Not later: nothing would add the job of a webhook that comes in between.
    this.adding = null;
  }

  /** A job that already exists is not changed, whatever its state. */
  async add(deliveries: { webhook: Deliverable; delayMs: number }[]): Promise<void> {
    // On Postgres it would wait without end, and so would the application's second close().
    if (this.queue.closing) throw new Error('the application closes');
    const jobs = deliveries.map(({ webhook, delayMs }) => ({
      name: 'deliver',
      data: jobData(webhook),
      // BullMQ 5.40 also delays a job whose delay is 0.
      opts: { jobId: webhook.id, ...this.jobOptions, ...(delayMs > 0 && { delay: Math.ceil(delayMs) }) },
    }));
    const [first, ...others] = jobs;
    // For one job the pipeline of addBulk() would cost several times as much as the job.
    if (first && others.length === 0) await this.queue.add(first.name, first.data, first.opts);
    else await this.queue.addBulk(jobs);
  }

  /** Removes the jobs of webhooks that are deleted. A job that runs stays, and ends when it finds no row. */
  async remove(webhookIds: string[]): Promise<void> {
    await fewAtATime(webhookIds, (id) => this.queue.remove(id));
  }

  /** Restarts finished jobs of overdue webhooks, with all their attempts. A job that runs or waits is left alone. */
  async restart(webhookIds: string[]): Promise<RestartResult[]> {
    const isSearchable = this.isOnRedis && (await this.queue.getWaitingCount()) <= MAX_SEARCHED;
    return fewAtATime(webhookIds, (id) => this.restartOne(id, isSearchable));
  }

  private async restartOne(webhookId: string, isSearchable: boolean): Promise<RestartResult> {
    const job = await this.queue.getJob(webhookId).catch((error: unknown) => this.removeUnreadable(webhookId, error));
    if (!job) return 'missing';
    // For a waiting job, Redis has to search the whole list.
    const state = job.finishedOn || isSearchable ? await job.getState() : null;
    // No worker finds it: Redis has lost its list, as when an operator deletes keys one by one.
    if (state === 'unknown') {
      await this.queue.remove(webhookId);
      return 'missing';
    }
    if (!job.finishedOn) {
      // Longer than Usher ever delays a job: the delay was set on the dashboard, or by a worker whose clock was ahead.
      const dueAt = (job.processedOn ?? job.timestamp) + job.delay;
      if (dueAt - Date.now() <= this.maxDelayMs) return 'not-needed';
      // Only a delayed job can be promoted.
      return job.promote().then(
        () => 'restarted',
        () => 'not-needed',
      );
    }
    if (state !== 'completed' && state !== 'failed') return 'not-needed';
    // Of several concurrent calls one succeeds; for the others the job is already restarted.
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true }).catch(() => undefined);
    return 'restarted';
  }

  /** For a job whose content is not JSON. No worker can read it, and it would end every retry run. */
  private async removeUnreadable(webhookId: string, error: unknown): Promise<undefined> {
    if (!(error instanceof SyntaxError)) throw error;
    await this.queue.remove(webhookId);
  }
}

/** The longest delay that Usher gives a job: to the next attempt, until the end of a lease, or while its host is slow. */
function maxDelayMs(retry: RetryPolicy): number {
  const lease = retry.retryEveryMs + retry.timeoutMs + retry.minIntervalMs;
  return Math.max(longestWaitMs(retry), lease, MAX_DEFERRAL_INTERVALS * retry.minIntervalMs) + MARGIN_MS;
}

/** Works on a few items at a time. Returns the results in their order. */
async function fewAtATime<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += FEW)
    results.push(...(await Promise.all(items.slice(from, from + FEW).map(work))));
  return results;
}

function jobData({ id, referenceId, clientId, notifyUrl }: Deliverable): DeliveryJob {
  return { webhook: id, reference: referenceId, client: clientId, host: new URL(notifyUrl).host };
}
