import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { logErrors, PRODUCER } from '../queue/queue.module.js';
import { Purge } from './purge.js';
import { PURGE_QUEUE, PurgeSchedule } from './purge.schedule.js';

/** Deletes expired rows and rows older than the retention time. */
@Module({
  imports: [BullModule.registerQueue({ name: PURGE_QUEUE, configKey: PRODUCER })],
  providers: [Purge, PurgeSchedule],
  exports: [Purge, BullModule],
})
export class PurgeModule {
  constructor(@InjectQueue(PURGE_QUEUE) queue: Queue) {
    logErrors(queue);
  }
}
