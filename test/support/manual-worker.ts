import { type Job, Worker } from 'bullmq';
import { Workers } from '../../src/queue/workers.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { eventually } from './eventually.js';
import type { TestUsher } from './usher.js';

/** The token of the locks on the jobs that {@link ManualWorker.take} returns. */
export const TOKEN = 'manual';

/** A BullMQ worker of the delivery jobs without a processor: the test takes jobs from it and says what becomes of them. */
export class ManualWorker {
  private constructor(
    /** The worker of the server. */
    readonly running: Worker,
    private readonly manual: Worker,
  ) {}

  static of(usher: TestUsher): ManualWorker {
    const { all } = usher.running.app.get(Workers, { strict: false });
    const { worker } = all.find((one) => one.worker.name === WEBHOOK_QUEUE)!;
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
