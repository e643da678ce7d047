import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { timeOfId } from '../../../values/identifier.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import type { ListedWebhook } from '../../../webhooks/search/webhook-list.js';
import { stateOf } from '../../../webhooks/undelivered/resend.schemas.js';
import type { WebhookResend } from '../../../webhooks/undelivered/webhook-resend.entity.js';
import { postForm } from '../frame/form.js';
import { clientLink, facts, orderLink, receiverLink, statusBadge, tiles, time } from '../frame/parts.js';
import { listHref } from './notification-filter.js';
import { notificationTable } from './notification-table.js';

export interface ShownResend {
  resend: WebhookResend;
  clientName: string | null;
  /** The notifications that an operator has selected; null for a request by filter. */
  selected: ListedWebhook[] | null;
}

/** How far a request to send many notifications again is. */
export function resendPage(request: FastifyRequest, { resend, clientName, selected }: ShownResend): Html {
  const { resent, refused, finishedAt } = resend;
  return html`${tiles([
      { name: 'State', value: stateBadge(resend) },
      { name: 'Selected', value: resend.selected ?? 'more than 10,000' },
      { name: 'Sent again', value: resent, kind: 'good' },
      { name: 'Left out', value: refused },
    ])}
    ${progress(resend)} ${finishedAt === null ? stopForm(request, resend) : null}
    <section class="card">
      ${facts([
        ['Client', resend.clientId === null ? null : clientLink({ id: resend.clientId, name: clientName ?? '' })],
        ['Receiver', resend.host === null ? null : receiverLink(resend.host)],
        ['Reason', resend.reason === null ? null : diagnosisOf(resend.reason).meaning],
        ['Order', resend.referenceId === null ? null : orderLink(resend.referenceId)],
        ['Created since', resend.madeSince === null ? null : time(resend.madeSince)],
        ['Created before', resend.madeUntil === null ? null : time(resend.madeUntil)],
        ['Failed since', resend.since === null ? null : time(resend.since)],
        ['Failed before', resend.until === null ? null : time(resend.until)],
        ['Asked for by', resend.actor],
        ['Started', time(resend.createdAt)],
        ['Ended', finishedAt === null ? null : time(finishedAt)],
      ])}
      <p class="hint">
        Each is sent as a new notification. Left out is what has a newer, pending or delivered notification of the same
        order, and what belongs to a client without a Notify URL. It goes on after a restart.
      </p>
      <p class="actions">
        <a class="button" href="${listHref(filterOf(resend))}">Show what has failed and was not sent again</a>
        <a class="button" href="/ops/audit?subject=${encodeURIComponent(`resend:${resend.id}`)}">Audit</a>
      </p>
    </section>
    ${
      selected &&
      html`<h2>Selected notifications</h2>
        ${notificationTable(selected)}`
    }`;
}

function stateBadge(resend: WebhookResend): Html {
  const state = stateOf(resend);
  return statusBadge(state.toLowerCase(), state === 'FINISHED' ? 'good' : 'warning');
}

const stopForm = (request: FastifyRequest, { id }: WebhookResend): Html | null =>
  postForm(request, { action: `/ops/resends/${id}/stop`, button: 'Stop' });

/** The newest come first, so the place that it has reached is a time. */
function progress({ selected, resent, refused, finishedAt, doneFromId }: WebhookResend): Html | null {
  if (finishedAt !== null) return null;
  const done = resent + refused;
  const reached = doneFromId === null ? null : html`It has reached the notifications of ${time(timeOfId(doneFromId))}.`;
  const bar =
    selected === null
      ? null
      : html`<progress max="${Math.max(selected, done, 1)}" value="${done}" aria-label="Progress"></progress>`;
  return html`${bar}
    <p class="dim">${reached} It goes from the newest to the oldest, and waits if no worker runs.</p>`;
}

const filterOf = ({ clientId, host, reason, referenceId }: WebhookResend) => ({
  status: 'UNRESOLVED',
  client: clientId ?? '',
  host: host ?? '',
  reason: reason ?? '',
  order: referenceId ?? '',
});
