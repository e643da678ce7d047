import { Module } from '@nestjs/common';
import { WebhookModule } from '../webhook.module.js';
import { ClientWebhooks } from './client-webhooks.js';
import { TestNotifications } from './test-notifications.js';
import { WebhooksController } from './webhooks.controller.js';

/** The REST routes of a client's own webhooks. */
@Module({
  imports: [WebhookModule],
  controllers: [WebhooksController],
  providers: [ClientWebhooks, TestNotifications],
})
export class WebhookRoutesModule {}
