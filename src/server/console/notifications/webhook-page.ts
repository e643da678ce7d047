import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import type { DeliveryPlan } from '../../../webhooks/delivery-plan.js';
import type { AttemptView, WebhookView } from '../../../webhooks/webhook-view.js';
import { postForm } from '../frame/form.js';
import {
  clientLink,
  copyButton,
  emptyState,
  facts,
  notice,
  orderLink,
  receiverLink,
  statusBadge,
  time,
  webhookLink,
} from '../frame/parts.js';
import { attemptStory } from './attempt-story.js';

export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
  plan: DeliveryPlan | null;
  clientName: string | null;
  /** All webhooks of the order, the oldest first. */
  chain: WebhookView[];
  body: string | null;
  /** Why a resend was refused; null if it was not. */
  refusal: string | null;
}

/** The detail page of a webhook: what became of it, its attempts as a timeline, and what to do. */
export function webhookPage(request: FastifyRequest, details: WebhookDetails): Html {
  const { webhook, attempts, plan, clientName, chain, body, refusal } = details;
  const { id, referenceId, clientId, ownerId, notifyUrl, status, createdAt, nextAttemptAt, finishedAt, resendOf } =
    webhook;
  return html`${refusal === null ? null : notice('bad', refusal)}
    <section class="card">
      ${facts([
        ['Status', statusBadge(status)],
        ['Id', html`<span class="id">${id} ${copyButton(id)}</span>`],
        ['Order', orderLink(referenceId)],
        ['Client', clientLink({ id: clientId, name: clientName ?? '' })],
        ['Member', ownerId],
        ['Receiver', notifyUrl === null ? null : receiverLink(new URL(notifyUrl).host)],
        ['Notify URL', notifyUrl ?? 'deleted because of its age'],
        ['Created', since(createdAt)],
        ['Next attempt', nextAttemptAt === null ? null : since(nextAttemptAt)],
        ['Ended', finishedAt === null ? null : since(finishedAt)],
        ['Resend of', resendOf === null ? null : webhookLink(resendOf)],
      ])}
      ${whatToDo(request, details)}
    </section>
    ${chain.length > 1 ? chainOf(chain, id) : null}
    <h2>Attempts</h2>
    ${
      attempts.length === 0
        ? emptyState(notifyUrl === null ? 'Deleted because of their age.' : 'None yet. The first one is made at once.')
        : html`<ol class="timeline">
            ${attempts.map((one) => attemptStory(one, status))}
          </ol>`
    }
    ${plan && planned(plan)} ${body === null ? null : bodyOf(body)}`;
}

const since = (text: string): Html => time(Date.parse(text));

/** A FAILED webhook that nothing has followed can be sent again; the Notify URL may have to be repaired before. */
function whatToDo(request: FastifyRequest, { webhook, chain }: WebhookDetails): Html | null {
  const { id, clientId, status, notifyUrl } = webhook;
  const later = chain.findLast((one) => one.id > id && one.eventType === webhook.eventType);
  const repair = html`<a class="button" href="/ops/clients/${encodeURIComponent(clientId)}#notify-url"
    >Repair the Notify URL</a
  >`;
  if (status === 'SUCCESS' || notifyUrl === null) return null;
  if (status === 'PENDING') return html`<p class="actions">${repair}</p>`;
  if (later) return html`<p class="actions">Sent again as ${webhookLink(later.id)} ${statusBadge(later.status)}</p>`;
  const resend = postForm(request, { action: `/ops/webhooks/${id}/resend`, button: 'Send again', kind: 'primary' });
  return html`<div class="actions">${resend} ${repair}</div>`;
}

/** Each notification of the order, so that it is seen whether it arrived in the end. */
const chainOf = (chain: WebhookView[], shown: string): Html =>
  html`<h2>Notifications of this order</h2>
    <ol>
      ${chain.map(
        ({ id, status, createdAt, resendOf }) =>
          html`<li>
            ${webhookLink(id)} ${statusBadge(status)} ${resendOf === null ? 'created' : 'sent again'}
            ${since(createdAt)} ${id === shown ? html`<strong>(this one)</strong>` : null}
          </li>`,
      )}
    </ol>`;

const planned = ({ attempts, failedNotBefore }: DeliveryPlan): Html =>
  html`<h2>What follows</h2>
    <ol class="timeline">
      ${attempts.map(
        ({ number, notBefore }) =>
          html`<li>
            <p><strong>${number}</strong> not before ${since(notBefore)}</p>
          </li>`,
      )}
      <li><p>FAILED not before ${since(failedNotBefore)}, if every attempt fails</p></li>
    </ol>`;

const bodyOf = (body: string): Html =>
  html`<h2>Body</h2>
    <details>
      <summary>Show the exact text that is signed and sent (${Buffer.byteLength(body)} bytes)</summary>
      <pre>${body}</pre>
    </details>`;
