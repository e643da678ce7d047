import { Logger } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { runAt } from '../values/retry-schedule.js';

export interface SlotJob {
  slot: number;
}

/** Kept long enough that the next job finds the previous one, unless the queue lost its memory. */
const KEPT = { count: 20 };

/**
 * One job at each mark of the clock (a multiple of the period since 1970): every worker adds it, and its id makes it one.
 * Nothing repeats by itself in the queue, so nothing of the schedule can be lost there.
 */
export class SlotQueue {
  private readonly logger: Logger;
  private timer: NodeJS.Timeout | undefined;

  /** `what` names a job in the log. */
  constructor(
    private readonly queue: Queue<SlotJob>,
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

  job(slot: number): Promise<Job<SlotJob> | undefined> {
    return this.queue.getJob(jobId(slot)) as Promise<Job<SlotJob> | undefined>;
  }

  private async add(slot: number): Promise<void> {
    await this.queue.add('run', { slot }, { jobId: jobId(slot), removeOnComplete: KEPT, removeOnFail: KEPT });
  }
}

const jobId = (slot: number): string => `run-${slot}`;
