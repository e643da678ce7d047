import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { NotificationSender } from '../transport/notification-sender.js';

const createSender = ({ retry, allowPrivateHosts, webhookProxy }: ResolvedOptions): NotificationSender =>
  new NotificationSender({ timeoutMs: retry.timeoutMs, allowPrivateHosts, proxy: webhookProxy });

/** Provides the one sender of a process, for deliveries and for test notifications. */
@Module({
  providers: [{ provide: NotificationSender, useFactory: createSender, inject: [USHER_OPTIONS] }],
  exports: [NotificationSender],
})
export class SenderModule implements OnApplicationShutdown {
  constructor(private readonly sender: NotificationSender) {}

  async onApplicationShutdown(): Promise<void> {
    await this.sender.close();
  }
}
