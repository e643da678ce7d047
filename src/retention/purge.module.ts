import { InjectQueue, BullModule } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  Module,
} from '@nestjs/common';
import type { Queue } from 'bullmq';
import { type RunJob, RunQueue } from '../queue/run-queue.js';
import { Workers } from '../queue/workers.js';
import { Purge } from './purge.js';
import { errorLogOf, PRODUCER } from '../queue/queue.module.js';
import { LogLine } from '../values/log-line.js';

export const PURGE_QUEUE = 'usher-purge';

const HOUR_MS = 3_600_000;

/** Runs the purge at every full hour, in one worker. */
@Injectable()
export class PurgeSchedule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Usher purge');
  private readonly runs: RunQueue;
  private readonly shutdown = new AbortController();

  constructor(
    @InjectQueue(PURGE_QUEUE) queue: Queue<RunJob>,
    private readonly purge: Purge,
    private readonly workers: Workers,
  ) {
    this.runs = new RunQueue(queue, HOUR_MS, 'purge');
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    await this.workers.start(PURGE_QUEUE, this.process.bind(this), this.logger);
    this.runs.start();
  }

  beforeApplicationShutdown(): void {
    this.runs.stop();
    this.shutdown.abort();
  }

  async process(): Promise<void> {
    const purged = await this.purge.run({ signal: this.shutdown.signal });
    this.logger.log(new LogLine({ purged: 'expired rows', ...purged }));
  }
}

/** Deletes expired rows and rows older than the retention time. */
@Module({
  imports: [BullModule.registerQueue({ name: PURGE_QUEUE, configKey: PRODUCER })],
  providers: [Purge, PurgeSchedule, errorLogOf(PURGE_QUEUE)],
  exports: [Purge, BullModule],
})
export class PurgeModule {}
