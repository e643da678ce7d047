import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DelayedError, type Job, UnrecoverableError } from 'bullmq';
import { isDatabaseDown } from '../../database/errors.js';
import { RepeatedWarnings } from '../../queue/repeated-warnings.js';
import { Workers } from '../../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { DatabaseOutage } from '../deliver/database-outage.js';
import { Delivery, type DeliveryResult } from '../deliver/delivery.js';
import { DeferralSchedule } from './deferral-schedule.js';
import { type DeliveryJob, WEBHOOK_QUEUE } from './delivery.queue.js';
import { type Destination, SlotShares } from './open-requests.js';

/** A failed attempt with attempts left. BullMQ retries the job when the row is due. */
export class DeliveryFailed extends Error {
  constructor(
    line: string,
    readonly dueInMs: number,
  ) {
    super(line);
  }
}

const MIN_BACKOFF_MS = 1_000;
/** Lower than the priority of first attempts, which is 0 and the highest. */
const RETRY_PRIORITY = 10;

/** Maps the result of a delivery to the next step of the BullMQ job. The row decides; BullMQ's own count is only shown. */
@Injectable()
export class DeliveryProcessor implements OnApplicationBootstrap {
  private readonly logger = new Logger('Usher DeliveryProcessor');
  private readonly warnings = new RepeatedWarnings(this.logger);

  private readonly shares: SlotShares;
  private readonly deferrals: DeferralSchedule;

  constructor(
    private readonly delivery: Delivery,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly workers: Workers,
    private readonly outage: DatabaseOutage,
  ) {
    this.shares = new SlotShares(options.concurrency);
    this.deferrals = new DeferralSchedule(options.retry.minIntervalMs);
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    await this.delivery.prepare();
    await this.workers.start(WEBHOOK_QUEUE, this.process.bind(this), this.logger, workerOptions(this.options));
  }

  /** Resolves to the line that the dashboard shows as the job's result, or to nothing if no attempt was made. */
  async process(job: Job<DeliveryJob>, token?: string): Promise<string | undefined> {
    await this.outage.end();
    const slot = await this.shares.take(destinationOf(job));
    if ('retry' in slot) return this.defer(job, this.deferrals.next(slot), token);
    // The job's id, because the job's data can be edited on the dashboard.
    const webhook = job.id ?? '';
    const result = await this.delivery.attempt(webhook).catch((error: unknown) => this.afterFault(webhook, error));
    slot.release('line' in result);
    return result.kind === 'delivered' ? shown(result) : this.afterFailure(job, result, token);
  }

  private async afterFailure(
    job: Job<DeliveryJob>,
    result: Exclude<DeliveryResult, { kind: 'delivered' }>,
    token?: string,
  ): Promise<undefined> {
    if (result.kind === 'missing') this.warnOfMissing(job.id ?? '');
    if (result.kind === 'ended' || result.kind === 'missing') return undefined;
    if (result.kind === 'deferred') return this.defer(job, result.inMs, token);
    await job.log(shown(result)).catch((error: Error) => {
      this.logger.debug(`job ${job.id ?? ''}: the log line of this attempt was not written: ${error.message}`);
    });
    if (result.kind === 'exhausted') throw new UnrecoverableError(result.line);
    if (job.priority !== RETRY_PRIORITY) await job.changePriority({ priority: RETRY_PRIORITY });
    throw new DeliveryFailed(result.line, result.dueInMs);
  }

  /** Where two databases share a queue, each takes jobs of the other, whose notifications then wait for a retry run. */
  private warnOfMissing(webhookId: string): void {
    this.warnings.warn(
      `webhook ${webhookId} has a job, but is not in this database: its client was erased, the database was restored, or ` +
        `another database uses the queue prefix ${this.options.queuePrefix} too; give each database a prefix of its own`,
    );
  }

  /** An error here, such as a database that is down, defers the job and does not count as an attempt. */
  private afterFault(webhookId: string, error: unknown): DeliveryResult {
    if (isDatabaseDown(error)) void this.outage.begin(error);
    else this.logger.error(`webhook ${webhookId} is deferred: ${(error as Error).message}`);
    return { kind: 'deferred', inMs: 5 * MIN_BACKOFF_MS };
  }

  private async defer(job: Job<DeliveryJob>, inMs: number, token?: string): Promise<never> {
    await job.moveToDelayed(Date.now() + backoffMs(inMs), token);
    throw new DelayedError();
  }
}

/** A line of the job's log, or its result, which the dashboard shows. */
const shown = ({ attempt, line }: { attempt: number; line: string }): string =>
  `${new Date().toISOString()} attempt ${attempt}: ${line}`;

/** Without the port and a dot at the end of the name: they do not make it another host. */
function destinationOf({ data }: Job<Partial<DeliveryJob> | null>): Destination {
  const host = String(data?.host).replace(/:\d+$/, '').replace(/\.$/, '');
  return { client: String(data?.client), host };
}

/** Milliseconds until the row is due, a whole number of at least 1,000, for any error. Never throws. */
export function backoffStrategy(_attemptsMade: number, _type: string | undefined, error: Error | undefined): number {
  return backoffMs(error instanceof DeliveryFailed ? error.dueInMs : 0);
}

const backoffMs = (ms: number): number => Math.max(MIN_BACKOFF_MS, Math.ceil(ms));

/**
 * The lock is three HTTP timeouts, so that a slow receiver or a clock that is one minute wrong does not make a job look
 * stalled.
 */
function workerOptions({ retry, concurrency }: ResolvedOptions) {
  const lockDuration = Math.max(3 * retry.timeoutMs, 10_000);
  return {
    concurrency,
    lockDuration,
    lockRenewTime: Math.ceil(lockDuration / 6),
    stalledInterval: Math.ceil(lockDuration / 3),
    // No limit, because the row counts the attempts. This is the largest integer that Postgres accepts.
    maxStalledCount: 2 ** 31 - 1,
    settings: { backoffStrategy },
  };
}
