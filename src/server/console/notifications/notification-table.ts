import { type Html, html } from '../../../http/html.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import type { ListedWebhook } from '../../../webhooks/search/webhook-list.js';
import { clientLink, orderLink, receiverLink, statusBadge, table, time, webhookLink } from '../frame/parts.js';

/** The form that the checkboxes of a table belong to. */
export const SELECTION_FORM = 'selection';
const SELECTED = 'select.';

/** Whether a notification can still be sent again. */
export const isOpen = ({ webhook, sentAgain }: ListedWebhook): boolean =>
  webhook.status === 'FAILED' && sentAgain === null && webhook.notifyUrl !== null;

/** `hasSelection`: those that can be sent again get a checkbox of the form {@link SELECTION_FORM}. */
export const notificationTable = (webhooks: ListedWebhook[], hasSelection = false): Html =>
  table(
    {
      Notification: (one) =>
        html`<span class="id"
          >${hasSelection && isOpen(one) && selection(one.webhook.id)} ${webhookLink(one.webhook.id)}</span
        >`,
      Status: statusOf,
      'Client and receiver': ({ webhook: { clientId, notifyUrl }, clientName }) =>
        html`<div>${clientLink({ id: clientId, name: clientName })}</div>
          <div>${receiver(notifyUrl)}</div>`,
      Order: ({ webhook }) => orderLink(webhook.referenceId),
      Attempts: { number: ({ webhook }) => webhook.attempts },
      'Why it failed': ({ failure }) =>
        failure && html`<span title="${failure.error}">${failure.diagnosis?.meaning ?? failure.error}</span>`,
      Created: ({ webhook }) => time(webhook.createdAt),
    },
    webhooks,
  );

const receiver = (notifyUrl: string | null): Html =>
  notifyUrl === null ? html`<span class="dim">deleted</span>` : receiverLink(hostOf(notifyUrl));

/** Tells what failed and was sent again apart from what still needs somebody. */
function statusOf({ webhook: { status }, sentAgain }: ListedWebhook): Html {
  if (sentAgain === null) return statusBadge(status);
  return html`${statusBadge(status, 'neutral')} <span class="dim">resent as</span> ${webhookLink(sentAgain.id)}
    ${statusBadge(sentAgain.status)}`;
}

const selection = (id: string): Html =>
  html`<input
    type="checkbox"
    form="${SELECTION_FORM}"
    id="${SELECTED}${id}"
    name="${SELECTED}${id}"
    value="yes"
    aria-label="Select the notification ${id}"
  />`;

/** The ids that were selected in a posted form. */
export const selectedIds = (fields: Record<string, string>): string[] =>
  Object.keys(fields)
    .filter((name) => name.startsWith(SELECTED))
    .map((name) => name.slice(SELECTED.length));
