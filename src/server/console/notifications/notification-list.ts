import type { EntityManager } from 'typeorm';
import type { Client } from '../../../clients/client.entity.js';
import { html } from '../../../http/html.js';
import { ID, timeOfId } from '../../../values/identifier.js';
import { hostOf, parseUrl } from '../../../values/urls/notify-url.js';
import { ANY_WEBHOOK, type WebhookCriteria } from '../../../webhooks/search/webhook-criteria.js';
import type { ListedWebhook } from '../../../webhooks/search/webhook-list.js';
import { type DiagnosisCode, DIAGNOSES, diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import { type ResendOutcome, stateOf } from '../../../webhooks/undelivered/resend.schemas.js';
import type { WebhookResend } from '../../../webhooks/undelivered/webhook-resend.entity.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import { searchClients } from '../clients/clients-data.js';
import { choice, hasFault, hrefOf, moment, readFilter, type Texts } from '../../../http/pages/fields.js';
import { type Columns, facts, statusBadge, table, tiles, time } from '../../../http/pages/parts.js';
import type { Visit } from '../../../http/pages/site.js';
import { clientLink, orderLink, receiverLink, webhookLink } from '../frame/links.js';

const statusFilter = (
  name: string,
  status: WebhookCriteria['status'] = null,
  isSentAgain: WebhookCriteria['isSentAgain'] = null,
) => ({ name, status, isSentAgain });

/** The values of the field `status`, with what they mean. */
export const STATUS_FILTERS = new Map(
  Object.entries({
    '': statusFilter('All'),
    PENDING: statusFilter('Pending', 'PENDING'),
    SUCCESS: statusFilter('Delivered', 'SUCCESS'),
    FAILED: statusFilter('Failed', 'FAILED'),
    UNRESOLVED: statusFilter('Failed, not sent again', 'FAILED', false),
    RESENT: statusFilter('Failed, sent again', 'FAILED', true),
  }),
);

const REASONS = Object.fromEntries(
  Object.entries(DIAGNOSES).map(([code, { meaning }]) => [code, `${code}: ${meaning}`]),
);

export const FILTER_FIELDS = {
  status: {
    label: null,
    read: (text: string) => STATUS_FILTERS.get(text) ?? null,
    fault: 'Choose one from the list.',
  },
  client: {
    label: 'Client, by name or id',
    isForOperators: true,
    read: (text: string) => text,
    fault: 'No client has this id or name.',
  },
  host: { label: 'Receiver', read: hostIn, fault: 'Give the host of a Notify URL, such as api.example.com.' },
  reason: choice<DiagnosisCode>('Reason', REASONS),
  since: moment('Created since'),
  until: moment('Created before'),
  endedSince: moment('Ended since'),
  order: {
    label: 'Order key',
    read: (text: string) => (ReferenceId.safeParse(text).success ? text : null),
    fault: 'An order key has no spaces.',
  },
  resend: { label: null, read: (text: string) => (ID.test(text) ? text : null), fault: 'There is no such request.' },
};

export type NotificationFilter = Awaited<ReturnType<typeof readNotificationFilter>>;

const MAX_CHOICES = 10;

/** Reads the filter from an address or a form. `ofClient`: only the notifications of this client. `criteria` is null if a field has a fault. */
export async function readNotificationFilter(manager: EntityManager, input: Texts, ofClient: string | null) {
  const filter = readFilter(FILTER_FIELDS, input);
  const { status: state, client: name, order: referenceId, resend: resendId, ...others } = filter.values;
  const isChosen = name !== null && ofClient === null;
  const clients = isChosen ? await searchClients(manager, name, MAX_CHOICES) : [];
  const [client, another] = clients;
  if (another) filter.faults.client = 'Several clients match; choose one below.';
  else if (isChosen && !client) filter.faults.client = FILTER_FIELDS.client.fault;
  const { status, isSentAgain } = state ?? ANY_WEBHOOK;
  const criteria: WebhookCriteria = {
    ...others,
    status,
    isSentAgain,
    clientId: ofClient ?? client?.id ?? null,
    referenceId,
    resendId,
  };
  return { ...filter, criteria: hasFault(filter) ? null : criteria, clients };
}

export const listHref = (given: Texts) => hrefOf('~/notifications', given);

/** The host in what somebody may paste: a host, or a whole URL. Null if there is none. */
function hostIn(text: string) {
  const url = text.includes('//') ? text : `https://${text}`;
  const host = parseUrl(url)?.host ?? '';
  return host === '' || host.length > 260 ? null : host;
}

/** The form that the checkboxes of a table belong to. */
export const SELECTION_FORM = 'selection';
const SELECTED = 'select.';

export const isOpen = ({ webhook, sentAgain }: ListedWebhook) =>
  webhook.status === 'FAILED' && sentAgain === null && webhook.notifyUrl !== null;

/** With `hasBoxes`, notifications that can be sent again have a checkbox of the form {@link SELECTION_FORM}. */
export const notificationColumns = (
  { clientId, query, mayChange }: Visit,
  hasBoxes = mayChange,
): Columns<ListedWebhook> => ({
  Notification: {
    value: ({ webhook }) => webhook.id,
    cell: (one) =>
      html`<span class="id"
        >${hasBoxes && isOpen(one) && checkbox(one.webhook.id, query.select === 'all')}
        ${webhookLink(one.webhook.id)}</span
      >`,
  },
  Status: { value: ({ webhook }) => webhook.status, cell: statusOf },
  'Resent as': { value: ({ sentAgain }) => sentAgain && sentAgain.id, isOnlyInFile: true },
  ...(clientId === null && {
    Client: {
      value: ({ webhook, clientName }) => clientName ?? webhook.clientId,
      cell: ({ webhook: { clientId }, clientName }) => clientLink({ id: clientId, name: clientName }),
    },
  }),
  Receiver: {
    value: ({ webhook: { notifyUrl } }) => notifyUrl && hostOf(notifyUrl),
    cell: ({ webhook: { notifyUrl } }) =>
      notifyUrl === null ? html`<span class="dim">deleted</span>` : receiverLink(hostOf(notifyUrl), clientId),
  },
  Order: { value: ({ webhook }) => webhook.referenceId, cell: ({ webhook }) => orderLink(webhook.referenceId) },
  Attempts: { number: ({ webhook }) => webhook.attemptCount },
  'Why it failed': {
    value: ({ failure }) => failure && (failure.diagnosis?.code ?? failure.error),
    // An error may name a private address, which a client must not see.
    cell: ({ failure }) =>
      failure &&
      html`<span title="${clientId === null && failure.error}">${failure.diagnosis?.meaning ?? failure.error}</span>`,
  },
  Created: { time: ({ webhook }) => webhook.createdAt },
  Ended: { time: ({ webhook }) => webhook.finishedAt },
});

export const notificationTable = (visit: Visit, webhooks: ListedWebhook[]) =>
  table(notificationColumns(visit, false), webhooks);

/** A failed notification that was sent again looks different from one that still needs attention. */
function statusOf({ webhook: { status }, sentAgain }: ListedWebhook) {
  if (sentAgain === null) return statusBadge(status);
  return html`${statusBadge(status, 'neutral')} <span class="dim">resent as</span> ${webhookLink(sentAgain.id)}
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

export const selectedIds = (fields: Texts) =>
  Object.keys(fields)
    .filter((name) => name.startsWith(SELECTED))
    .map((name) => name.slice(SELECTED.length))
    .filter((id) => ID.test(id));

/** The progress of a request to send many notifications again. `selected`: the notifications that it names, if any. */
export function resendPage(
  visit: Visit,
  resend: WebhookResend & ResendOutcome,
  client: Client | null,
  selected: ListedWebhook[] | null,
) {
  const { resent, refused, delivered, failedAgain, pending, createdAt, finishedAt, isStopped } = resend;
  const { id, clientId, host, reason, referenceId, refusals } = resend;
  const since = new Date(createdAt).toISOString();
  const made = (status: string, count: number) =>
    html`<a href="${listHref({ resend: id, status, since })}">${count}</a>`;
  const isRunning = finishedAt === null;
  const body = html`${tiles({
      State: statusBadge(stateOf(resend).toLowerCase(), isRunning || isStopped ? 'warning' : 'good'),
      Selected: resend.selected ?? 'not counted',
      'Sent again': resent,
      Delivered: [made('SUCCESS', delivered), delivered && delivered === resent ? 'good' : null],
      'Failed again': [made('FAILED', failedAgain), failedAgain ? 'bad' : null],
      Pending: made('PENDING', pending),
      'Left out': refused,
    })}
    ${isRunning && html`${progress(resend)} ${visit.form('stop')}`}
    <section class="card">
      ${facts({
        Client: visit.clientId === null ? clientId && clientLink({ id: clientId, name: client?.name }) : null,
        Receiver: host && receiverLink(host, visit.clientId),
        Reason: reason && diagnosisOf(reason).meaning,
        Order: referenceId && orderLink(referenceId),
        'Created since': time(resend.madeSince),
        'Created before': time(resend.madeUntil),
        'Failed since': time(resend.since),
        'Failed before': time(resend.until),
        'Left out, a later one failed': refusals.newer || null,
        'Left out, another one was pending': refusals.otherPending || null,
        'Left out, another one was delivered': refusals.otherDelivered || null,
        'Left out, no Notify URL': refusals.noNotifyUrl || null,
        'Outcome not known': resend.unknown || null,
        'Asked for by': resend.actor,
        Started: time(createdAt),
        Ended: time(finishedAt),
      })}
      <p class="hint">Each is sent as a new notification. The request continues after a restart.</p>
      <p class="actions">
        <a
          class="button"
          href="${listHref({
            status: 'UNRESOLVED',
            client: clientId ?? '',
            host: host ?? '',
            reason: reason ?? '',
            order: referenceId ?? '',
          })}"
          >Show what has failed and was not sent again</a
        >
        ${!visit.clientId && html`<a class="button" href="${hrefOf('/ops/audit', { subject: `resend:${id}` })}">Audit</a>`}
      </p>
    </section>
    ${
      selected &&
      html`<h2>Selected notifications</h2>
        ${notificationTable(visit, selected)}`
    }`;
  return { title: 'Send again', body, isLive: visit.refusal === null && (isRunning || pending > 0) };
}

/** The newest notifications come first, so the progress can be shown as a time. */
function progress({ selected, resent, refused, doneFromId }: WebhookResend) {
  const done = resent + refused;
  const reached = doneFromId && html`It has reached the notifications of ${time(timeOfId(doneFromId))}.`;
  const bar =
    selected !== null &&
    html`<progress max="${Math.max(selected, done, 1)}" value="${done}" aria-label="Progress"></progress>`;
  return html`${bar}
    <p class="dim">${reached} The request goes from the newest to the oldest, and waits if no worker runs.</p>`;
}
