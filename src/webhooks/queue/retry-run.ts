import { InjectQueue } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { removeLostJob } from '../../queue/queue.module.js';
import { type RunJob, RunQueue } from '../../queue/run-queue.js';
import { Workers } from '../../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type Progress, ResendWork } from '../undelivered/resend-work.js';
import { ContactMessages } from '../contact/contact-messages.js';
import { Sweep } from './sweep.js';

export const RETRY_RUN_QUEUE = 'usher-retry-run';

/** A job that goes on with a request to resend many webhooks. */
interface ResendJob {
  resend: string;
}

/** How long such a job runs. If its request is not finished then, a new job goes on with it behind the jobs that wait. */
const RESEND_MS = 5_000;
/** Lower than that of a retry run, which therefore waits for no resend that has not begun. */
const RESEND_PRIORITY = 1;
/** Two, so that a retry run waits for none of one resend, and for at most one job of several. */
const CONCURRENCY = 2;

/**
 * The scheduled retry run (specification 8): it starts at every multiple of WEBHOOK_RETRY_EVERY since 1970. Its queue also
 * has the jobs of requests to resend many webhooks; a run adds those that are missing.
 */
@Injectable()
export class RetryRun implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Usher RetryRun');
  private readonly runs: RunQueue;
  private hasShutDown = false;

  constructor(
    @InjectQueue(RETRY_RUN_QUEUE) private readonly queue: Queue<RunJob | ResendJob>,
    private readonly sweep: Sweep,
    private readonly resends: ResendWork,
    private readonly contactMessages: ContactMessages,
    @Inject(USHER_OPTIONS) options: ResolvedOptions,
    private readonly workers: Workers,
  ) {
    this.runs = new RunQueue(queue as Queue<RunJob>, options.retry.retryEveryMs, 'retry run');
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    const process = this.process.bind(this);
    const worker = await this.workers.start(RETRY_RUN_QUEUE, process, this.logger, { concurrency: CONCURRENCY });
    worker.on('failed', (_, error) => this.logger.warn(`a retry run failed: ${error.message}`));
    // By now the queue has removed the job, and its slot has taken the next one that waited.
    worker.on('completed', ({ data }, progress) => {
      if ('resend' in data && progress === 'going-on') this.resend(data.resend);
    });
    this.runs.start();
  }

  beforeApplicationShutdown(): void {
    this.runs.stop();
    this.hasShutDown = true;
  }

  /** Adds the job of a request to resend, without waiting. If the queue is down, the next retry run adds it. */
  resend(id: string): void {
    const options = {
      jobId: resendJobId(id),
      priority: RESEND_PRIORITY,
      removeOnComplete: true,
      removeOnFail: true,
    };
    this.queue.add('resend', { resend: id }, options).catch((error: unknown) => {
      this.logger.warn(`resend ${id} waits for the next retry run: ${(error as Error).message}`);
    });
  }

  /** Resolves to the progress of a resend. A request that has to wait is left for the next retry run. */
  async process({ data }: Job<RunJob | ResendJob>): Promise<Progress | undefined> {
    if ('resend' in data) {
      // Not AbortSignal.any: Node collects a timeout that is only part of another signal, which then never aborts.
      const endsAt = performance.now() + RESEND_MS;
      return this.resends.run(data.resend, () => this.hasShutDown || performance.now() > endsAt);
    }
    const previous = await this.runs.job(data.run - 1);
    if (!previous)
      this.logger.log(
        'the queue knows no previous retry run, as at the first start; a job is added for every pending webhook that has none',
      );
    // One query for both, so that an idle process sends no further one.
    const { now, isDue } = await this.contactMessages.look();
    await this.sweep.run(previous ? 'overdue' : 'all', now);
    if (isDue) this.contactMessages.startSending();
    for (const id of await this.resends.running()) {
      await removeLostJob(this.queue, resendJobId(id));
      this.resend(id);
    }
    return undefined;
  }
}

const resendJobId = (id: string): string => `resend-${id}`;
