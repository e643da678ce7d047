import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DelayedError, type Job, UnrecoverableError } from 'bullmq';
import { Workers } from '../../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { Delivery, type DeliveryResult } from '../deliver/delivery.js';
import { type DeliveryJob, WEBHOOK_QUEUE } from './delivery.queue.js';
import { HostShares, DeferralSchedule } from './host-shares.js';

/** A charged failure with attempts left; BullMQ retries the job when the row is due. */
export class DeliveryFailed extends Error {
  constructor(
    line: string,
    readonly dueInMs: number,
  ) {
    super(line);
  }
}

const LEAST_BACKOFF_MS = 1_000;
/** Any number but 0: behind every first attempt. */
const RETRY_PRIORITY = 10;

/** Turns the result of a delivery into what BullMQ does with the job next. The row decides, BullMQ's own count informs. */
@Injectable()
export class DeliveryProcessor implements OnApplicationBootstrap {
  private readonly logger = new Logger(DeliveryProcessor.name);

  private readonly shares: HostShares;
  private readonly deferrals: DeferralSchedule;

  constructor(
    private readonly delivery: Delivery,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly workers: Workers,
  ) {
    this.shares = new HostShares(options.webhookConcurrency);
    this.deferrals = new DeferralSchedule(options.retry.minIntervalMs);
  }

  async onApplicationBootstrap(): Promise<void> {
    const process = this.process.bind(this);
    await this.workers.start(WEBHOOK_QUEUE, process, this.logger, workerOptions(this.options));
  }

  async process(job: Job<DeliveryJob>, token?: string): Promise<void> {
    const host = hostOf(job);
    const result = await this.shares.within(host, () => this.attempt(webhookOf(job)));
    if (result === null) return this.defer(job, this.deferrals.next(host), token);
    switch (result.kind) {
      case 'ended':
        return;
      case 'delivered':
        // Not waited for: the slot is worth more.
        void this.note(job, result);
        return;
      case 'deferred':
        return this.defer(job, result.inMs, token);
      case 'exhausted':
        await this.note(job, result);
        throw new UnrecoverableError(result.line);
      case 'failed':
        await this.note(job, result);
        await this.lowerPriority(job);
        throw new DeliveryFailed(result.line, result.dueInMs);
    }
  }

  /** A database that is down costs no attempt of the job either. */
  private async attempt(webhookId: string): Promise<DeliveryResult> {
    try {
      return await this.delivery.attempt(webhookId);
    } catch (error) {
      this.logger.error(`webhook ${webhookId} is put off: ${(error as Error).message}`);
      return { kind: 'deferred', inMs: 5 * LEAST_BACKOFF_MS };
    }
  }

  /** A line in the job's log, for whoever looks at it on the dashboard. */
  private async note(job: Job<DeliveryJob>, { attempt, line }: { attempt: number; line: string }): Promise<void> {
    await job.log(`${new Date().toISOString()} attempt ${attempt}: ${line}`).catch((error: unknown) => {
      this.logger.debug(`job ${job.id ?? ''} has no line for this attempt: ${(error as Error).message}`);
    });
  }

  private async defer(job: Job<DeliveryJob>, inMs: number, token?: string): Promise<never> {
    await job.moveToDelayed(Date.now() + Math.max(LEAST_BACKOFF_MS, Math.ceil(inMs)), token);
    throw new DelayedError();
  }

  private async lowerPriority(job: Job<DeliveryJob>): Promise<void> {
    if (job.priority !== RETRY_PRIORITY) await job.changePriority({ priority: RETRY_PRIORITY });
  }
}

/** By the job's id, which nobody can change; its data can be edited on the dashboard. */
const webhookOf = ({ id }: Job<DeliveryJob>): string => id ?? '';

const hostOf = ({ data }: Job<Partial<DeliveryJob> | null>): string => String(data?.host);

/** The remainder to the row's due time: a whole number of at least a second, whatever the error was. Never throws. */
export function backoffStrategy(_attemptsMade: number, _type: string | undefined, error: Error | undefined): number {
  const dueInMs = error instanceof DeliveryFailed ? error.dueInMs : 0;
  return Math.max(LEAST_BACKOFF_MS, Math.ceil(dueInMs));
}

/** A lock three times the HTTP timeout: neither a slow receiver nor a clock a minute off makes a live job look stalled. */
function workerOptions({ retry, webhookConcurrency }: ResolvedOptions) {
  const lockDuration = Math.max(3 * retry.timeoutMs, 10_000);
  return {
    concurrency: webhookConcurrency,
    lockDuration,
    lockRenewTime: Math.ceil(lockDuration / 6),
    stalledInterval: Math.ceil(lockDuration / 3),
    // Without end: the row decides how often a webhook is tried, and 32 bits are all that Postgres takes.
    maxStalledCount: 2 ** 31 - 1,
    settings: { backoffStrategy },
  };
}
