import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import type { Webhook } from './webhook.entity.js';
import { type FinalStatus, WebhookEnded } from './webhook-ended.event.js';

export type EndedWebhook = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'attempts' | 'resendOf'>;

/** Tells the application's listeners how webhooks ended; no delivery waits for them. */
@Injectable()
export class WebhookEndings implements OnApplicationShutdown {
  private readonly logger = new Logger(WebhookEndings.name);
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(private readonly emitter: EventEmitter2) {}

  tell(status: FinalStatus, webhooks: EndedWebhook[]): void {
    for (const { id, referenceId, clientId, attempts, resendOf } of webhooks) {
      this.emit(new WebhookEnded(id, referenceId, clientId, status, attempts, resendOf));
    }
  }

  /** A listener that has begun may finish: the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.underWay);
  }

  private emit(event: WebhookEnded): void {
    if (!this.emitter.hasListeners(WebhookEnded.NAME)) return;
    const telling = Promise.resolve()
      .then(() => this.emitter.emitAsync(WebhookEnded.NAME, event))
      .catch((error: unknown) => this.logger.error(`a listener to ${WebhookEnded.NAME} failed: ${String(error)}`))
      .finally(() => this.underWay.delete(telling));
    this.underWay.add(telling);
  }
}
