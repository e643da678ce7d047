import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import { ClientsModule } from '../clients/clients.module.js';
import { logErrors, PRODUCER } from '../queue/queue.module.js';
import { ClaimStore } from './deliver/claim.store.js';
import { DeliveryEvents } from './deliver/delivery-events.js';
import { Delivery } from './deliver/delivery.js';
import { OutcomeStore } from './deliver/outcome.store.js';
import { SenderModule } from './deliver/sender.module.js';
import { SigningSecrets } from './deliver/signing.js';
import { MassResend } from './mass-resend.js';
import { DeliveryProcessor } from './queue/delivery.processor.js';
import { DeliveryQueue, WEBHOOK_PRODUCER, WEBHOOK_QUEUE } from './queue/delivery.queue.js';
import { RETRY_RUN_PRODUCER, RETRY_RUN_QUEUE, RetryRun } from './queue/retry-run.js';
import { Sweep } from './queue/sweep.js';
import { OrderCompletedListener } from './record/order-completed.listener.js';
import { WebhookRecorder } from './record/webhook.recorder.js';
import { WebhookEndedEmitter } from './webhook-ended.event.js';
import { Webhook, WebhookAttempt } from './webhook.entity.js';
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

/** The workers that deliver the webhooks recorded by {@link WebhookModule}. */
@Module({
  imports: [WebhookModule, SenderModule, EventEmitterModule.forRoot({ global: false })],
  providers: [
    DeliveryEvents,
    WebhookEndedEmitter,
    ClaimStore,
    OutcomeStore,
    SigningSecrets,
    Delivery,
    DeliveryProcessor,
    Sweep,
    RetryRun,
  ],
})
export class WebhookWorkerModule {}
