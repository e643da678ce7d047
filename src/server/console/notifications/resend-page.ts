import type { Client } from '../../../clients/client.entity.js';
import { html } from '../../../http/html.js';
import { timeOfId } from '../../../values/identifier.js';
import type { ListedWebhook } from '../../../webhooks/search/webhook-list.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import { type ResendOutcome, stateOf } from '../../../webhooks/undelivered/resend.schemas.js';
import type { WebhookResend } from '../../../webhooks/undelivered/webhook-resend.entity.js';
import type { Visit } from '../../../http/pages/site.js';
import { facts, statusBadge, tiles, time } from '../../../http/pages/parts.js';
import { clientLink, orderLink, receiverLink } from '../frame/links.js';
import { listHref, notificationTable } from './notification-list.js';

/** The progress of a request to send many notifications again. `selected`: the notifications that it names, if any. */
export function resendPage(
  visit: Visit,
  resend: WebhookResend & ResendOutcome,
  client: Client | null,
  selected: ListedWebhook[] | null,
) {
  const { resent, refused, delivered, failedAgain, pending, createdAt, finishedAt, isStopped } = resend;
  const since = new Date(createdAt).toISOString();
  const made = (status: string, count: number) =>
    html`<a href="${listHref({ resend: visit.id, status, since })}">${count}</a>`;
  const isRunning = finishedAt === null;
  const body = html`${tiles({
    State: statusBadge(stateOf(resend).toLowerCase(), isRunning || isStopped ? 'warning' : 'good'),
    Selected: resend.selected ?? 'more than 10,000',
    'Sent again': resent,
    Delivered: [made('SUCCESS', delivered), delivered && delivered === resent ? 'good' : null],
    'Failed again': [made('FAILED', failedAgain), failedAgain ? 'bad' : null],
    Pending: made('PENDING', pending),
    'Left out': refused,
  })}
  ${isRunning && html`${progress(resend)} ${visit.form('stop')}`} ${summary(visit, resend, client)}
  ${
    selected &&
    html`<h2>Selected notifications</h2>
      ${notificationTable(visit, selected)}`
  }`;
  return { title: 'Send again', body, isLive: visit.refusal === null && (isRunning || pending > 0) };
}

const summary = ({ clientId }: Visit, resend: WebhookResend & ResendOutcome, client: Client | null) =>
  html`<section class="card">
    ${facts({
      Client: clientId === null ? resend.clientId && clientLink({ id: resend.clientId, name: client?.name }) : null,
      Receiver: resend.host && receiverLink(resend.host, clientId),
      Reason: resend.reason && diagnosisOf(resend.reason).meaning,
      Order: resend.referenceId && orderLink(resend.referenceId),
      'Created since': time(resend.madeSince),
      'Created before': time(resend.madeUntil),
      'Failed since': time(resend.since),
      'Failed before': time(resend.until),
      'Left out, a later one failed': resend.refusals.newer || null,
      'Left out, another one was pending': resend.refusals.otherPending || null,
      'Left out, another one was delivered': resend.refusals.otherDelivered || null,
      'Left out, no Notify URL': resend.refusals.noNotifyUrl || null,
      'Outcome not known': resend.unknown || null,
      'Asked for by': resend.actor,
      Started: time(resend.createdAt),
      Ended: time(resend.finishedAt),
    })}
    <p class="hint">Each is sent as a new notification. The request continues after a restart.</p>
    <p class="actions">
      <a
        class="button"
        href="${listHref({
          status: 'UNRESOLVED',
          client: resend.clientId ?? '',
          host: resend.host ?? '',
          reason: resend.reason ?? '',
          order: resend.referenceId ?? '',
        })}"
        >Show what has failed and was not sent again</a
      >
      ${!clientId && html`<a class="button" href="/ops/audit?subject=${encodeURIComponent(`resend:${resend.id}`)}">Audit</a>`}
    </p>
  </section>`;

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
