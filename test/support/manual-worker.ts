import { type Job, Worker } from 'bullmq';
import { Workers } from '../../src/queue/workers.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { eventually } from './eventually.js';
import type { TestUsher } from './usher.js';

/** The token of the locks on the jobs that {@link ManualWorker.take} returns. */
export const TOKEN = 'manual';

/** The worker of the server for this queue. */
export function workerOf(usher: TestUsher, queue: string): Worker {
  const { all } = usher.running.app.get(Workers, { strict: false });
  return all.find(({ worker }) => worker.name === queue)!.worker;
}

/** A BullMQ worker of the delivery jobs without a processor: the test takes jobs from it and says what becomes of them. */
export class ManualWorker {
  private constructor(
    /** The worker of the server. */
    readonly running: Worker,
    private readonly manual: Worker,
  ) {}

  static of(usher: TestUsher): ManualWorker {
    const worker = workerOf(usher, WEBHOOK_QUEUE);
    return new ManualWorker(worker, new Worker(worker.name, null, { ...worker.opts, autorun: false }));
  }

  /** Waits until this job can be taken. The worker of the server must be paused. */
  take(id: string): Promise<Job> {
    return eventually(`job ${id} can be taken`, async () => {
      const job = await this.manual.getNextJob(TOKEN, { block: false });
      return job?.id === id ? job : null;
    });
  }

  close(): Promise<void> {
    return this.manual.close();
  }
}
