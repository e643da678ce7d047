import { OnEvent } from '@nestjs/event-emitter';

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
