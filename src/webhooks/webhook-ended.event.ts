import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { UsherEmitter } from '../events/usher-emitter.js';
import type { Webhook } from './webhook.entity.js';

/** The final statuses of a webhook (specification 3). */
export type FinalStatus = 'SUCCESS' | 'FAILED';

/**
 * A webhook ended. Emitted once, after the commit, in the process that recorded it. If that process stops between the
 * commit and the event, the event is lost; `WebhookService.find` always has the status.
 */
export class WebhookEnded {
  static readonly NAME = 'usher.webhook.ended';

  constructor(
    readonly id: string,
    readonly referenceId: string,
    readonly clientId: string,
    readonly status: FinalStatus,
    /** The number of attempts. */
    readonly attempts: number,
    /** The id of the FAILED webhook that this one resends, or null. */
    readonly resendOf: string | null,
  ) {}
}

/** Subscribes a method to {@link WebhookEnded}. An error that the method throws is logged and has no other effect. */
export const OnWebhookEnded = (): MethodDecorator => OnEvent(WebhookEnded.NAME);

export type EndedWebhook = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'attempts' | 'resendOf'>;

/** Emits {@link WebhookEnded} to the application's listeners. Deliveries do not wait for them. */
@Injectable()
export class WebhookEndedEmitter implements OnApplicationShutdown {
  private readonly logger = new Logger(WebhookEndedEmitter.name);
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(@Inject(UsherEmitter) private readonly emitter: Pick<UsherEmitter, 'hasListeners' | 'emitAndWait'>) {}

  emitAll(status: FinalStatus, webhooks: EndedWebhook[]): void {
    for (const { id, referenceId, clientId, attempts, resendOf } of webhooks) {
      this.emit(new WebhookEnded(id, referenceId, clientId, status, attempts, resendOf));
    }
  }

  /** Waits for running listeners, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.underWay);
  }

  private emit(event: WebhookEnded): void {
    if (!this.emitter.hasListeners(WebhookEnded.NAME)) return;
    const emitting = Promise.resolve()
      .then(() => this.emitter.emitAndWait(WebhookEnded.NAME, event))
      .catch((error: unknown) => this.logger.error(`a listener for ${WebhookEnded.NAME} failed: ${String(error)}`))
      .finally(() => this.underWay.delete(emitting));
    this.underWay.add(emitting);
  }
}
