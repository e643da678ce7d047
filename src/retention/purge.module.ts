import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { IdempotencyKey } from '../orders/idempotency-key.entity.js';
import { MovieOrder } from '../orders/movie-order.entity.js';
import { logErrors, PRODUCER } from '../queue/queue.module.js';
import { Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';
import { Purge } from './purge.js';
import { PURGE_PRODUCER, PURGE_QUEUE, PurgeSchedule } from './purge.schedule.js';

/** Deletes expired rows and rows older than the retention time. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Grant, AccessToken, MovieOrder, IdempotencyKey, Webhook, WebhookAttempt]),
    BullModule.registerQueueAsync({
      name: PURGE_PRODUCER,
      configKey: PRODUCER,
      useFactory: () => ({ name: PURGE_QUEUE }),
    }),
  ],
  providers: [Purge],
  exports: [Purge, BullModule],
})
export class PurgeModule {
  constructor(@InjectQueue(PURGE_PRODUCER) queue: Queue) {
    logErrors(queue);
  }
}

/** Runs the purge in workers. */
@Module({ imports: [PurgeModule], providers: [PurgeSchedule] })
export class PurgeWorkerModule {}
