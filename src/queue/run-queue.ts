import { Logger } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { runAt } from '../values/retry-schedule.js';

export interface RunJob {
  run: number;
}

/** Kept long enough that the next job finds the previous one, unless the queue lost its memory. */
const KEPT = { count: 20 };

/**
 * One job at each mark of the clock (a multiple of the period since 1970): every worker adds it, and its id makes it one.
 * Nothing repeats by itself in the queue, so nothing of the schedule can be lost there.
 */
export class RunQueue {
  private readonly logger: Logger;
  private timer: NodeJS.Timeout | undefined;

  /** `what` names a job in the log. */
  constructor(
    private readonly queue: Queue<RunJob>,
    private readonly everyMs: number,
    private readonly what: string,
  ) {
    this.logger = new Logger(what);
  }

  /** Adds the job of every mark from now on. */
  start(): void {
    const now = Date.now();
    const mark = runAt(this.everyMs, now + 1);
    this.timer = setTimeout(() => {
      this.start();
      this.add(mark / this.everyMs).catch((error: unknown) => {
        this.logger.warn(`this mark's ${this.what} is left out: ${(error as Error).message}`);
      });
    }, mark - now);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  job(run: number): Promise<Job<RunJob> | undefined> {
    return this.queue.getJob(jobId(run)) as Promise<Job<RunJob> | undefined>;
  }

  private async add(run: number): Promise<void> {
    await this.queue.add('run', { run }, { jobId: jobId(run), removeOnComplete: KEPT, removeOnFail: KEPT });
  }
}

const jobId = (run: number): string => `run-${run}`;
