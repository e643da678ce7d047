import { Injectable } from '@nestjs/common';
import type { Client } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { Problem } from '../../../http/problem.js';
import { timeOfId } from '../../../values/identifier.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import { stateOf } from '../../../webhooks/undelivered/resend.schemas.js';
import type { WebhookResend } from '../../../webhooks/undelivered/webhook-resend.entity.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { ClientDirectory } from '../clients/client-directory.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { facts, statusBadge, tiles, time } from '../../../http/pages/parts.js';
import { clientLink, orderLink, receiverLink } from '../frame/links.js';
import { listHref } from './notification-filter.js';
import { notificationTable } from './notification-table.js';

/** How far a request to send many notifications again is. */
@Injectable()
export class ResendPages {
  constructor(
    private readonly resends: WebhookResends,
    private readonly webhooks: WebhookList,
    private readonly clients: ClientDirectory,
  ) {}

  readonly pages: Page[] = [
    {
      path: '/ops/resends/:id',
      show: (visit) => this.show(visit),
      actions: {
        stop: {
          button: 'Stop',
          // The page says so if the request has ended meanwhile.
          run: (_, { id, actor }) =>
            this.resends.stop(id, actor).catch((error: unknown) => {
              if (!(error instanceof Problem) || error.getStatus() !== 409) throw error;
            }),
        },
      },
    },
  ];

  private async show(visit: Visit): Promise<View> {
    const resend = await this.resends.get(visit.id);
    const { clientId, webhookIds, resent, refused, finishedAt } = resend;
    const selected = webhookIds && (await this.webhooks.listed(webhookIds));
    const client = clientId === null ? null : await this.clients.find(clientId);
    const body = html`${tiles({
      State: stateBadge(resend),
      Selected: resend.selected ?? 'more than 10,000',
      'Sent again': [resent, 'good'],
      'Left out': refused,
    })}
    ${progress(resend)} ${finishedAt === null && visit.form('stop')} ${summary(resend, client)}
    ${
      selected &&
      html`<h2>Selected notifications</h2>
        ${notificationTable(selected)}`
    }`;
    const isLive = finishedAt === null || (selected ?? []).some(({ sentAgain }) => sentAgain?.status === 'PENDING');
    return { title: 'Send again', section: 'notifications', body, isLive };
  }
}

const summary = (resend: WebhookResend, client: Client | null): Html =>
  html`<section class="card">
    ${facts({
      Client: resend.clientId && clientLink({ id: resend.clientId, name: client?.name }),
      Receiver: resend.host && receiverLink(resend.host),
      Reason: resend.reason && diagnosisOf(resend.reason).meaning,
      Order: resend.referenceId && orderLink(resend.referenceId),
      'Created since': time(resend.madeSince),
      'Created before': time(resend.madeUntil),
      'Failed since': time(resend.since),
      'Failed before': time(resend.until),
      'Asked for by': resend.actor,
      Started: time(resend.createdAt),
      Ended: time(resend.finishedAt),
    })}
    <p class="hint">
      Each is sent as a new notification. Left out is what has a newer, pending or delivered notification of the same
      order, and what belongs to a client without a Notify URL. It goes on after a restart.
    </p>
    <p class="actions">
      <a class="button" href="${listHref(filterOf(resend))}">Show what has failed and was not sent again</a>
      <a class="button" href="/ops/audit?subject=${encodeURIComponent(`resend:${resend.id}`)}">Audit</a>
    </p>
  </section>`;

function stateBadge(resend: WebhookResend): Html {
  const state = stateOf(resend);
  return statusBadge(state.toLowerCase(), state === 'FINISHED' ? 'good' : 'warning');
}

/** The newest come first, so the place that it has reached is a time. */
function progress({ selected, resent, refused, finishedAt, doneFromId }: WebhookResend): Html | null {
  if (finishedAt !== null) return null;
  const done = resent + refused;
  const reached = doneFromId && html`It has reached the notifications of ${time(timeOfId(doneFromId))}.`;
  const bar =
    selected !== null &&
    html`<progress max="${Math.max(selected, done, 1)}" value="${done}" aria-label="Progress"></progress>`;
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
