import { InjectQueue } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { type RunJob, RunQueue } from '../../queue/run-queue.js';
import { Workers } from '../../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { ContactMessages } from '../contact/contact-messages.js';
import { Sweep } from './sweep.js';

export const RETRY_RUN_QUEUE = 'usher-retry-run';

/** The scheduled retry run (specification 8): it starts at every multiple of WEBHOOK_RETRY_EVERY since 1970. */
@Injectable()
export class RetryRun implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(RetryRun.name);
  private readonly runs: RunQueue;

  constructor(
    @InjectQueue(RETRY_RUN_QUEUE) queue: Queue<RunJob>,
    private readonly sweep: Sweep,
    private readonly contactMessages: ContactMessages,
    @Inject(USHER_OPTIONS) options: ResolvedOptions,
    private readonly workers: Workers,
  ) {
    this.runs = new RunQueue(queue, options.retry.retryEveryMs, 'retry run');
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    const process = this.process.bind(this);
    const worker = await this.workers.start(RETRY_RUN_QUEUE, process, this.logger);
    worker.on('failed', (_, error) => this.logger.warn(`a retry run failed: ${error.message}`));
    this.runs.start();
  }

  beforeApplicationShutdown(): void {
    this.runs.stop();
  }

  async process({ data: { run } }: Job<RunJob>): Promise<void> {
    const previous = await this.runs.job(run - 1);
    if (!previous)
      this.logger.warn(
        'the queue does not know the previous retry run; a job is added for every pending webhook that has none',
      );
    // One query for both, so that an idle process asks the database no more often.
    const { now, isDue } = await this.contactMessages.look();
    await this.sweep.run(previous ? 'overdue' : 'all', now);
    if (isDue) this.contactMessages.startSending();
  }
}
