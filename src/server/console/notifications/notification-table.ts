import type { Texts } from '../../../http/pages/fields.js';
import { html } from '../../../http/html.js';
import { ID } from '../../../values/identifier.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import type { ListedWebhook } from '../../../webhooks/search/webhook-list.js';
import { type Columns, statusBadge, table } from '../../../http/pages/parts.js';
import type { Visit } from '../../../http/pages/site.js';
import { clientLink, CONSOLE, orderLink, receiverLink, webhookLink } from '../frame/links.js';

/** The form that the checkboxes of a table belong to. */
export const SELECTION_FORM = 'selection';
const SELECTED = 'select.';

export const isOpen = ({ webhook, sentAgain }: ListedWebhook): boolean =>
  webhook.status === 'FAILED' && sentAgain === null && webhook.notifyUrl !== null;

/** If `visit` may make changes, notifications that can be sent again have a checkbox of the form {@link SELECTION_FORM}. */
export const notificationColumns = (visit?: Visit, home = visit?.home ?? CONSOLE): Columns<ListedWebhook> => ({
  Notification: {
    value: ({ webhook }) => webhook.id,
    cell: (one) =>
      html`<span class="id"
        >${visit?.mayChange && isOpen(one) && checkbox(one.webhook.id, visit.query.select === 'all')}
        ${webhookLink(one.webhook.id, home)}</span
      >`,
  },
  Status: { value: ({ webhook }) => webhook.status, cell: (one) => statusOf(one, home) },
  ...(home === CONSOLE && CLIENT),
  Receiver: {
    value: ({ webhook: { notifyUrl } }) => notifyUrl && hostOf(notifyUrl),
    cell: ({ webhook: { notifyUrl } }) =>
      notifyUrl === null ? html`<span class="dim">deleted</span>` : receiverLink(hostOf(notifyUrl), home),
  },
  Order: { value: ({ webhook }) => webhook.referenceId, cell: ({ webhook }) => orderLink(webhook.referenceId, home) },
  Attempts: { number: ({ webhook }) => webhook.attemptCount },
  'Why it failed': {
    value: ({ failure }) => failure && (failure.diagnosis?.code ?? failure.error),
    // An error may name a private address, which a client must not see.
    cell: ({ failure }) =>
      failure &&
      html`<span title="${home === CONSOLE && failure.error}">${failure.diagnosis?.meaning ?? failure.error}</span>`,
  },
  Created: { time: ({ webhook }) => Date.parse(webhook.createdAt) },
  Ended: { time: ({ webhook: { finishedAt } }) => (finishedAt === null ? null : Date.parse(finishedAt)) },
});

const CLIENT: Columns<ListedWebhook> = {
  Client: {
    value: ({ webhook, clientName }) => clientName ?? webhook.clientId,
    cell: ({ webhook: { clientId }, clientName }) => clientLink({ id: clientId, name: clientName }),
  },
};

export const notificationTable = (webhooks: ListedWebhook[], home?: string) =>
  table(notificationColumns(undefined, home), webhooks);

/** A failed notification that was sent again looks different from one that still needs attention. */
function statusOf({ webhook: { status }, sentAgain }: ListedWebhook, home?: string) {
  if (sentAgain === null) return statusBadge(status);
  return html`${statusBadge(status, 'neutral')} <span class="dim">resent as</span> ${webhookLink(sentAgain.id, home)}
    ${statusBadge(sentAgain.status)}`;
}

const checkbox = (id: string, isChecked: boolean) =>
  html`<input
    type="checkbox"
    form="${SELECTION_FORM}"
    id="${SELECTED}${id}"
    name="${SELECTED}${id}"
    value="yes"
    ${isChecked && html`checked`}
    aria-label="Select the notification ${id}"
  />`;

export const selectedIds = (fields: Texts): string[] =>
  Object.keys(fields)
    .filter((name) => name.startsWith(SELECTED))
    .map((name) => name.slice(SELECTED.length))
    .filter((id) => ID.test(id));
