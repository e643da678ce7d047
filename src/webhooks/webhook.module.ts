import { BullModule } from '@nestjs/bullmq';
import { type OnApplicationShutdown } from '@nestjs/common';
import { EventsModule } from '../events/events.js';
import { PortalModule } from '../portal/portal.js';
import { watchedQueue, PRODUCER } from '../queue/queue.module.js';
import { traceHeaders } from '../telemetry/tracing.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { ContactMessenger } from '../values/contact-messenger.js';
import { TestNotifications } from './api/test-notifications.js';
import { WebhooksController } from './api/webhooks.controller.js';
import { CONTACT_MESSENGER, ContactMessages } from './contact/contact-messages.js';
import { FileMessenger, SmtpMessenger } from './contact/messengers.js';
import { ClaimStore } from './deliver/claim.store.js';
import { DatabaseOutage } from './deliver/database-outage.js';
import { DeliveryEvents, WebhookEndedEmitter } from './deliver/delivery-events.js';
import { Delivery } from './deliver/delivery.js';
import { OutcomeStore } from './deliver/outcome.store.js';
import { SigningSecrets } from './deliver/signing.js';
import { DeliveryFigures } from './figures/delivery-figures.js';
import { DeliveryProcessor } from './queue/delivery.processor.js';
import { DeliveryQueue, WEBHOOK_QUEUE } from './queue/delivery.queue.js';
import { RETRY_RUN_QUEUE, RetryRun } from './queue/retry-run.js';
import { Sweep } from './queue/sweep.js';
import { OrderCompletedListener, WebhookRecorder } from './record/webhook.recorder.js';
import { NotificationSender } from './transport/notification-sender.js';
import { WebhookList } from './search/webhook-list.js';
import { WebhookSearch } from './search/webhook-search.js';
import { ResendWork } from './undelivered/resend-work.js';
import { UndeliveredController } from './undelivered/undelivered.controller.js';
import { UndeliveredWebhooks } from './undelivered/undelivered-webhooks.js';
import { WebhookResends } from './undelivered/webhook-resends.js';
import { DeliveryPauses } from './delivery-pauses.js';
import { UsherHealth } from './usher-health.js';
import { WebhookService } from './webhook.service.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

const createSender = ({ retry, allowPrivateHosts, proxy, traceReceivers }: ResolvedOptions): NotificationSender =>
  new NotificationSender({
    timeoutMs: retry.timeoutMs,
    allowPrivateHosts,
    proxy,
    ...(traceReceivers && { extraHeaders: () => traceHeaders() }),
  });

/** Only a process that delivers sends messages to contacts. */
async function createMessenger({
  contactMessages,
  deliver,
  database,
}: ResolvedOptions): Promise<ContactMessenger | null> {
  if (contactMessages === null || !deliver) return null;
  if ('send' in contactMessages) return contactMessages;
  if (contactMessages.kind === 'smtp') return SmtpMessenger.open(contactMessages);
  return new FileMessenger(database.kind === 'embedded' ? database.folder : null);
}

/**
 * Records notifications and enqueues their delivery. Where the options say `deliver`, its workers deliver them. They need
 * `app.enableShutdownHooks()` to finish running attempts at SIGTERM.
 */
@UsherNamedModule({
  imports: [
    EventsModule,
    PortalModule,
    BullModule.registerQueue(
      { name: WEBHOOK_QUEUE, configKey: PRODUCER },
      { name: RETRY_RUN_QUEUE, configKey: PRODUCER },
    ),
  ],
  providers: [
    WebhookRecorder,
    DeliveryQueue,
    OrderCompletedListener,
    WebhookService,
    WebhookSearch,
    WebhookList,
    ResendWork,
    WebhookResends,
    UndeliveredWebhooks,
    DeliveryPauses,
    // A process has one sender, for deliveries and for test notifications.
    { provide: NotificationSender, useFactory: createSender, inject: [USHER_OPTIONS] },
    SigningSecrets,
    TestNotifications,
    UsherHealth,
    DeliveryEvents,
    WebhookEndedEmitter,
    DatabaseOutage,
    ClaimStore,
    OutcomeStore,
    Delivery,
    DeliveryFigures,
    DeliveryProcessor,
    { provide: CONTACT_MESSENGER, useFactory: createMessenger, inject: [USHER_OPTIONS] },
    ContactMessages,
    Sweep,
    RetryRun,
    watchedQueue(WEBHOOK_QUEUE),
    watchedQueue(RETRY_RUN_QUEUE),
  ],
  exports: [
    WebhookService,
    WebhookSearch,
    WebhookList,
    WebhookResends,
    UndeliveredWebhooks,
    DeliveryPauses,
    DeliveryFigures,
    DeliveryQueue,
    NotificationSender,
    SigningSecrets,
    TestNotifications,
    UsherHealth,
    BullModule,
  ],
})
export class WebhookModule implements OnApplicationShutdown {
  constructor(private readonly sender: NotificationSender) {}

  async onApplicationShutdown(): Promise<void> {
    await this.sender.close();
  }
}

/** The REST routes of a client's own webhooks. */
@UsherNamedModule({
  imports: [WebhookModule],
  controllers: [UndeliveredController, WebhooksController],
})
export class WebhookRoutesModule {}
