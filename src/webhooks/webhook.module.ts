import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import { ClientsModule } from '../clients/clients.module.js';
import { logErrors } from '../queue/log-errors.js';
import { PRODUCER } from '../queue/queue.module.js';
import { ClaimStore } from './claim.store.js';
import { Delivery } from './delivery.js';
import { DeliveryProcessor } from './delivery.processor.js';
import { DeliveryEvents } from './delivery-events.js';
import { DeliveryQueue, WEBHOOK_PRODUCER, WEBHOOK_QUEUE } from './delivery.queue.js';
import { MassResend } from './mass-resend.js';
import { OrderCompletedListener } from './order-completed.listener.js';
import { OutcomeStore } from './outcome.store.js';
import { RETRY_RUN_PRODUCER, RETRY_RUN_QUEUE, RetryRun } from './retry-run.js';
import { SenderModule } from './sender.module.js';
import { SigningSecrets } from './signing-secrets.js';
import { Sweep } from './sweep.js';
import { Webhook } from './webhook.entity.js';
import { WebhookAttempt } from './webhook.entity.js';
import { WebhookEndings } from './webhook-endings.js';
import { WebhookRecorder } from './webhook.recorder.js';
import { WebhookService } from './webhook.service.js';

/** Records notifications and enqueues their delivery. */
@Module({
  imports: [
    ClientsModule,
    TypeOrmModule.forFeature([Webhook, WebhookAttempt]),
    BullModule.registerQueueAsync(
      { name: WEBHOOK_PRODUCER, configKey: PRODUCER, useFactory: () => ({ name: WEBHOOK_QUEUE }) },
      { name: RETRY_RUN_PRODUCER, configKey: PRODUCER, useFactory: () => ({ name: RETRY_RUN_QUEUE }) },
    ),
  ],
  providers: [WebhookRecorder, DeliveryQueue, OrderCompletedListener, WebhookService, MassResend],
  exports: [WebhookService, DeliveryQueue, ClientsModule, TypeOrmModule, BullModule],
})
export class WebhookModule {
  constructor(@InjectQueue(WEBHOOK_PRODUCER) deliveries: Queue, @InjectQueue(RETRY_RUN_PRODUCER) retryRuns: Queue) {
    for (const queue of [deliveries, retryRuns]) logErrors(queue);
  }
}

/** The processors that deliver what {@link WebhookModule} recorded. */
@Module({
  imports: [WebhookModule, SenderModule, EventEmitterModule.forRoot({ global: false })],
  providers: [
    ...[DeliveryEvents, WebhookEndings],
    ...[ClaimStore, OutcomeStore, SigningSecrets, Delivery, DeliveryProcessor, Sweep, RetryRun],
  ],
})
export class WebhookWorkerModule {}
