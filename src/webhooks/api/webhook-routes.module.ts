import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { SenderModule } from '../deliver/sender.module.js';
import { SigningSecrets } from '../deliver/signing.js';
import { WebhookModule } from '../webhook.module.js';
import { ClientWebhooks } from './client-webhooks.js';
import { TestNotifications } from './test-notifications.js';
import { WebhooksController } from './webhooks.controller.js';

/** The REST routes of a client's own webhooks. */
@Module({
  imports: [AuthModule, WebhookModule, SenderModule],
  controllers: [WebhooksController],
  providers: [ClientWebhooks, SigningSecrets, TestNotifications],
})
export class WebhookRoutesModule {}
