import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { WORKER } from '../queue/queue.module.js';
import { startWorker } from '../queue/start-worker.js';
import { type SlotJob, SlotQueue } from '../queue/slot-queue.js';
import { Purge } from './purge.js';

export const PURGE_QUEUE = 'purge';
export const PURGE_PRODUCER = 'usher-purge-producer';

const HOUR_MS = 3_600_000;

/** Purges what has expired at every full hour, in one worker. */
@Injectable()
@Processor({ name: PURGE_QUEUE, configKey: WORKER }, { autorun: false, lockDuration: 90_000, runRetryDelay: 2_000 })
export class PurgeSchedule extends WorkerHost implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('purge');
  private readonly slots: SlotQueue;
  private readonly ending = new AbortController();

  constructor(
    @InjectQueue(PURGE_PRODUCER) queue: Queue<SlotJob>,
    private readonly purge: Purge,
  ) {
    super();
    this.slots = new SlotQueue(queue, HOUR_MS, 'purge');
  }

  async onApplicationBootstrap(): Promise<void> {
    await startWorker(this.worker, this.logger);
    this.slots.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.slots.stop();
    this.ending.abort();
    await this.worker.close();
  }

  async process(): Promise<void> {
    this.logger.log({ purged: 'what has expired', ...(await this.purge.run({ signal: this.ending.signal })) });
  }
}
