import { Logger } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { runAt } from '../values/retry-schedule.js';

export interface RunJob {
  run: number;
}

/** Finished jobs are kept, so that a run can find the previous one. If it is missing, the queue has lost its data. */
const KEEP_FINISHED = { count: 20 };

/**
 * Adds one job for each scheduled run; runs start at multiples of the period since 1970. Every worker adds the job, and
 * the job id removes duplicates. The schedule itself is not stored in the queue, so it cannot be lost there.
 */
export class RunQueue {
  private timer: NodeJS.Timeout | undefined;
  /** The next run. */
  private next = { startsAt: 0, run: 0 };

  constructor(
    private readonly queue: Queue<RunJob>,
    private readonly everyMs: number,
    private readonly name: string,
  ) {}

  /** Adds the job of every run from now on. */
  start(): void {
    const now = Date.now();
    const startsAt = runAt(this.everyMs, now + 1);
    // A timer may fire too early, and then gets the same run. After a clock was set back, old numbers are not used again.
    if (startsAt !== this.next.startsAt)
      this.next = { startsAt, run: Math.max(startsAt / this.everyMs, this.next.run + 1) };
    const { run } = this.next;
    const options = { jobId: jobId(run), removeOnComplete: KEEP_FINISHED, removeOnFail: KEEP_FINISHED };
    this.timer = setTimeout(() => {
      this.start();
      this.queue.add('run', { run }, options).catch((error: unknown) => {
        new Logger(`Usher ${this.name}`).warn(`one ${this.name} was skipped: ${(error as Error).message}`);
      });
    }, startsAt - now);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  job(run: number): Promise<Job<RunJob> | undefined> {
    return this.queue.getJob(jobId(run));
  }
}

const jobId = (run: number): string => `run-${run}`;
