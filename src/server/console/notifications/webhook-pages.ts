import { type Html, html } from '../../../http/html.js';
import { hidePrivateResponse } from '../../../webhooks/api/client-view.js';
import type { AttemptView, DeliveryPlan, WebhookView } from '../../../webhooks/webhook-view.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { type Sent, WebhookList } from '../../../webhooks/search/webhook-list.js';
import type { WebhookDetails } from '../../../webhooks/webhook-queries.js';
import { PendingLimit } from '../../../webhooks/pending-limit.js';
import { WebhookService } from '../../../webhooks/webhook.service.js';
import { findClient } from '../../../clients/clients.service.js';
import { quoted } from '../clients/clients-pages.js';
import { pagesWith, type Visit } from '../../../http/pages/site.js';
import { copiedId, copyButton, emptyState, facts, statusBadge, time } from '../../../http/pages/parts.js';
import { clientLink, clientPath, orderLink, receiverLink, receiverPath, webhookLink } from '../frame/links.js';

export const webhookPages = pagesWith(
  [WebhookService, WebhookList, PendingLimit],
  (webhooks, list, pending, { manager, options }) => {
    /** In a client's portal, without what a client must not see. */
    async function detailsOf(visit: Visit) {
      const shown = await list.whole(visit.id);
      visit.checkClient(shown.webhook.clientId);
      if (visit.clientId === null) return shown;
      return { ...shown, attempts: shown.attempts.map((attempt) => hidePrivateResponse(attempt, options.environment)) };
    }

    return [
      {
        path: '~/webhooks/:id',
        section: 'notifications',
        show: async (visit) => {
          const shown = await detailsOf(visit);
          const { webhook, plan, chain, sent } = shown;
          const client = visit.clientId === null ? await findClient(manager, webhook.clientId) : null;
          const body = html`<section class="card">
              ${summary(visit, webhook, client?.name)} ${whatToDo(visit, webhook, chain)}
            </section>
            ${chain.length > 1 && chainOf(chain, visit)}
            <h2>Attempts</h2>
            ${timeline(shown, sent?.requests, visit)} ${plan && planned(plan)}
            ${
              sent &&
              html`<h2>Body</h2>
                <details>
                  <summary>Show the exact text that is signed and sent (${Buffer.byteLength(sent.body)} bytes)</summary>
                  <pre>${sent.body}</pre>
                </details>`
            }`;
          const isLive = webhook.status === 'PENDING';
          return { title: `Notification ${webhook.id}`, body, isLive };
        },
        actions: {
          resend: {
            button: 'Send again',
            kind: 'primary',
            answer: async (_, visit) => {
              const { webhook } = await detailsOf(visit);
              if (visit.clientId !== null) await pending.check(visit.clientId);
              return `~/webhooks/${(await webhooks.resend(webhook.id, visit)).id}`;
            },
          },
        },
      },
    ];
  },
);

const summary = ({ clientId }: Visit, webhook: WebhookView, clientName: string | undefined) =>
  facts({
    Status: statusBadge(webhook.status),
    Id: copiedId(webhook.id),
    Order: orderLink(webhook.referenceId),
    Client: clientId === null ? clientLink({ id: webhook.clientId, name: clientName }) : null,
    Member: clientId === null ? webhook.ownerId : null,
    Receiver: webhook.notifyUrl && receiverLink(hostOf(webhook.notifyUrl), clientId),
    'Notify URL': webhook.notifyUrl ?? 'deleted because of its age',
    Created: time(webhook.createdAt),
    'Next attempt': time(webhook.nextAttemptAt),
    'Deliveries paused': time(webhook.pausedSince),
    Ended: time(webhook.finishedAt),
    'Resend of': webhook.resendOf && webhookLink(webhook.resendOf),
  });

function timeline({ webhook, attempts }: WebhookDetails, sent: Sent[] = [], visit: Visit) {
  const { status, notifyUrl, pausedSince } = webhook;
  if (notifyUrl === null && attempts.length === 0)
    return emptyState('Deleted because of their age, with what was sent.');
  if (attempts.length === 0)
    return emptyState(
      pausedSince === null
        ? 'None yet. The first one is made at once.'
        : 'None yet. Deliveries are paused, so the notification is held until they are resumed.',
    );
  return html`<ol class="timeline">
    ${attempts.map((one, index) => attemptStory(one, status, sentPart(sent[index], visit)))}
  </ol>`;
}

/** Whoever has the whole request can send it again, so a viewer sees no signature. */
function sentPart(sent: Sent | undefined, { mayChange }: Visit) {
  if (typeof sent !== 'object') return html`<p class="dim">${sent}</p>`;
  const lines = Object.entries(sent.headers).map((header) => header.join(': '));
  const text = [`POST ${sent.url}`, ...lines].join('\n');
  if (!mayChange) return html`<pre>${text.replace(/(?<=^X-Signature.*: ).*/gm, 'hidden from viewers')}</pre>`;
  const parts = [quoted(sent.url), ...lines.map((line) => `-H ${quoted(line)}`), '--data-binary'];
  const curl = `curl -gi ${parts.join(' ')} ${quoted(sent.body.toString())}`;
  return html`<pre>${text}</pre>
    <details>
      <summary>As curl</summary>
      <pre>${curl}</pre>
    </details>
    ${copyButton(curl, 'Copy as curl')}`;
}

function attemptStory(attempt: AttemptView, status: WebhookView['status'], sent: Html) {
  const { number, startedAt, durationMs, phase, address, responseStatus, error, diagnosis, responseSnippet } = attempt;
  const unknown = status === 'PENDING' ? 'in progress, or cut off' : 'cut off';
  const verdict = durationMs === null ? unknown : (error ?? 'delivered');
  const kind = error === null && durationMs !== null ? 'good' : 'bad';
  const technical = [
    responseStatus && `status ${responseStatus}`,
    durationMs !== null && `${durationMs} ms`,
    phase && `reached ${phase}`,
    address,
  ];
  return html`<li class="is-${kind}">
    <p><strong>${number}</strong> ${time(startedAt)}</p>
    <div class="columns">
      <div>${sent}</div>
      <div>
        <p class="${kind}">${verdict}</p>
        ${diagnosis && html`<p>${diagnosis.meaning} <strong>${diagnosis.remedy}</strong></p>`}
        <p class="dim">${technical.filter(Boolean).join(' · ')}</p>
        ${responseSnippet !== null && html`<pre>${responseSnippet}</pre>`}
      </div>
    </div>
  </li>`;
}

/** A FAILED webhook without a later one can be sent again, to a Notify URL that was repaired meanwhile. */
function whatToDo(visit: Visit, webhook: WebhookView, chain: WebhookView[]) {
  const { id, clientId, status, notifyUrl, eventType } = webhook;
  const later = chain.findLast((one) => one.id > id && one.eventType === eventType);
  const form = visit.clientId === null ? clientPath(clientId) : '~/settings';
  const repair = (forWhat = '') =>
    html`<a class="button" href="${form}#notify-url">Repair the Notify URL${forWhat}</a>`;
  if (status === 'SUCCESS' || notifyUrl === null) return null;
  if (status === 'PENDING')
    return html`<p class="hint">Every attempt goes to the Notify URL above, so the receiver there must accept it.</p>
      <p class="actions">
        ${visit.clientId === null && html`<a class="button" href="${receiverPath(hostOf(notifyUrl))}">See the receiver</a>`}
        ${repair(' for later orders')}
      </p>`;
  if (later) return html`<p class="actions">Sent again as ${webhookLink(later.id)} ${statusBadge(later.status)}</p>`;
  return html`<div class="actions">${visit.form('resend')} ${repair()}</div>`;
}

/** All notifications of the order, which show whether one arrived in the end. */
const chainOf = (chain: WebhookView[], { id: shown }: Visit) =>
  html`<h2>Notifications of this order</h2>
    <ol>
      ${chain.map(
        ({ id, status, createdAt, resendOf }) =>
          html`<li>
            ${webhookLink(id)} ${statusBadge(status)} ${resendOf === null ? 'created' : 'sent again'} ${time(createdAt)}
            ${id === shown && html`<strong>(this one)</strong>`}
          </li>`,
      )}
    </ol>`;

const planned = ({ attempts, failedNotBefore }: DeliveryPlan) =>
  html`<h2>What follows</h2>
    <ol class="timeline">
      ${attempts.map(
        ({ number, notBefore }) =>
          html`<li>
            <p><strong>${number}</strong> not before ${time(notBefore)}</p>
          </li>`,
      )}
      <li><p>FAILED not before ${time(failedNotBefore)}, if every attempt fails</p></li>
    </ol>`;
