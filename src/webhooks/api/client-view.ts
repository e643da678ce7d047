import { z } from 'zod';
import { named, PageEnd } from '../../http/operation.js';
import { wholeNumber } from '../../http/problem.js';
import { type Environment, ID } from '../../values/identifier.js';
import { addressKind } from '../../values/urls/notify-url.js';
import { AttemptView, DeliveryPlan, givenMoment, ReferenceId, WebhookView } from '../webhook-view.js';

export const WebhookQuery = z
  .strictObject({
    status: WebhookView.shape.status.optional(),
    resent: z
      .enum(['true', 'false'])
      .optional()
      .describe('Only FAILED notifications that were sent again (`true`), or were not (`false`).'),
    referenceId: ReferenceId.optional().describe('The `key` of an order.'),
    createdAfter: givenMoment.optional().describe('Created at this time or later.'),
    createdBefore: givenMoment.optional().describe('Created before this time.'),
    limit: wholeNumber(1, 100, (number) => number.default(50)).describe('The number of notifications on a page.'),
    cursor: z
      .string()
      .regex(ID, 'must be the nextCursor of an earlier page')
      .optional()
      .describe('The `nextCursor` of the previous page.'),
  })
  .refine(({ status = 'FAILED', resent }) => !resent || status === 'FAILED', {
    path: ['resent'],
    error: 'can only be used with the status FAILED',
  });
export type WebhookQuery = z.infer<typeof WebhookQuery>;

/** A webhook as its own client sees it. */
export const ClientWebhook = named('Webhook', WebhookView.omit({ clientId: true, ownerId: true }));
export type ClientWebhook = z.infer<typeof ClientWebhook>;

export const WebhookStory = named(
  'WebhookStory',
  ClientWebhook.extend({
    attempts: z.array(AttemptView),
    plan: DeliveryPlan.nullable(),
  }),
);
export type WebhookStory = z.infer<typeof WebhookStory>;

export const WebhookPage = named(
  'WebhookPage',
  z.object({
    data: z.array(ClientWebhook).describe('Newest first.'),
    ...PageEnd,
  }),
);
export type WebhookPage = z.infer<typeof WebhookPage>;

export const clientView = ({ clientId: _, ownerId: __, ...view }: WebhookView): ClientWebhook => view;

type AttemptDetails = Pick<AttemptView, 'address' | 'error'> & Partial<Pick<AttemptView, 'responseSnippet'>>;

/**
 * Removes a private address and its response: they can reveal internal services of the operator to a client. In the sandbox
 * a loopback address stays, because a receiver under development often runs on the same machine.
 */
export function hidePrivateResponse<T extends AttemptDetails>(attempt: T, environment: Environment): T {
  const { address, error } = attempt;
  if (address !== null && isShown(address, environment)) return attempt;
  const shownError = address === null ? error : (error?.replaceAll(address, '(private)') ?? null);
  return { ...attempt, address: null, error: shownError, responseSnippet: null };
}

function isShown(address: string, environment: Environment): boolean {
  const kind = addressKind(address);
  return kind === 'public' || (environment === 'sandbox' && kind === 'loopback');
}
