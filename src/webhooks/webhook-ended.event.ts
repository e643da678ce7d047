import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { OnEvent, EventEmitter2 } from '@nestjs/event-emitter';
import type { Webhook } from './webhook.entity.js';

/** Where a webhook can end (specification 3). */
export type FinalStatus = 'SUCCESS' | 'FAILED';

/**
 * A webhook ended, and that is recorded. Told once, after the commit, in the process whose worker recorded it: a process
 * that dies in between tells nobody, so what must not be missed is looked up with `WebhookService.find`.
 */
export class WebhookEnded {
  static readonly NAME = 'usher.webhook.ended';

  constructor(
    readonly id: string,
    readonly referenceId: string,
    readonly clientId: string,
    readonly status: FinalStatus,
    /** How often it was tried. */
    readonly attempts: number,
    /** The FAILED webhook that it repeats, if it was sent anew. */
    readonly resendOf: string | null,
  ) {}
}

/** Subscribes a method to {@link WebhookEnded}. What the method throws is logged and changes nothing. */
export const OnWebhookEnded = (): MethodDecorator => OnEvent(WebhookEnded.NAME);

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
