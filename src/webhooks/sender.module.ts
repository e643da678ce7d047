import { Module, type OnApplicationShutdown } from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { NotificationSender } from './notification-sender.js';

const createSender = ({ retry, allowPrivateHosts, webhookProxy }: Config): NotificationSender =>
  new NotificationSender({ timeoutMs: retry.timeoutMs, allowPrivateHosts, proxy: webhookProxy });

/** The one sender of a process: of deliveries, and of tests. */
@Module({
  providers: [{ provide: NotificationSender, useFactory: createSender, inject: [CONFIG] }],
  exports: [NotificationSender],
})
export class SenderModule implements OnApplicationShutdown {
  constructor(private readonly sender: NotificationSender) {}

  async onApplicationShutdown(): Promise<void> {
    await this.sender.close();
  }
}
