import type { Operation } from '../../http/operation.js';
import { NOTIFICATION_EXAMPLE, Notification, NotificationHeaders } from '../../webhooks/api/notification.schema.js';

export const NOTIFICATION = {
  id: 'notifyOrderCompletion',
  tag: 'Notifications',
  summary: 'An order has been completed',
  description:
    'Sent to the order’s Notify URL. Verify X-Signature over the raw body, answer 2xx at once and ' +
    'process it afterwards. Any other response, or none within 30 seconds, is retried, up to five attempts in all.',
  security: [],
  oauth: false,
  page: false,
  parameters: { header: NotificationHeaders },
  body: { schema: Notification, example: NOTIFICATION_EXAMPLE },
} satisfies Partial<Operation>;
