import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { errorLogOf, PRODUCER } from '../queue/queue.module.js';
import { Purge } from './purge.js';
import { PURGE_QUEUE, PurgeSchedule } from './purge.schedule.js';

/** Deletes expired rows and rows older than the retention time. */
@Module({
  imports: [BullModule.registerQueue({ name: PURGE_QUEUE, configKey: PRODUCER })],
  providers: [Purge, PurgeSchedule, errorLogOf(PURGE_QUEUE)],
  exports: [Purge, BullModule],
})
export class PurgeModule {}
