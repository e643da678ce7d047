import { type Html, html } from '../../http/html.js';
import type { AttemptView, WebhookView } from '../../webhooks/webhook-view.js';

export interface WebhookDetails {
  webhook: WebhookView;
  attempts: AttemptView[];
  /** Why a resend was refused, if it was. */
  refusal?: string;
}

/** The detail page of a webhook: its attempts as a timeline, and a resend button if it has FAILED. */
export function webhookPage({ webhook, attempts, refusal }: WebhookDetails): Html {
  const { id, referenceId, clientId, notifyUrl, status, createdAt, nextAttemptAt, finishedAt, resendOf } = webhook;
  return html`${refusal === undefined ? null : html`<p class="note" role="alert">${refusal}</p>`}
    <h2>Webhook ${id}: <span class="${status}">${status}</span></h2>
    <dl class="facts">
      <dt>order</dt>
      <dd><a href="/ops?q=${encodeURIComponent(referenceId)}">${referenceId}</a></dd>
      <dt>client</dt>
      <dd><a href="/ops?q=${encodeURIComponent(clientId)}">${clientId}</a></dd>
      <dt>Notify URL</dt>
      <dd>${notifyUrl ?? 'deleted because of its age'}</dd>
      <dt>created</dt>
      <dd>${createdAt}</dd>
      ${
        nextAttemptAt === null
          ? null
          : html`<dt>next attempt</dt>
              <dd>${nextAttemptAt}</dd>`
      }
      ${
        finishedAt === null
          ? null
          : html`<dt>ended</dt>
              <dd>${finishedAt}</dd>`
      }
      ${
        resendOf === null
          ? null
          : html`<dt>resend of</dt>
              <dd><a href="/ops/webhooks/${resendOf}">${resendOf}</a></dd>`
      }
    </dl>
    ${
      status === 'FAILED'
        ? html`<form method="post" action="/ops/webhooks/${id}/resend">
            <p><button>Send again</button></p>
          </form>`
        : null
    }
    <h2>Attempts</h2>
    ${
      attempts.length === 0
        ? html`<p class="dim">${notifyUrl === null ? 'Deleted because of their age.' : 'None yet.'}</p>`
        : html`<ol class="timeline">
            ${attempts.map((one) => attempt(one, status))}
          </ol>`
    }`;
}

function attempt(attempt: AttemptView, status: WebhookView['status']): Html {
  const { number, startedAt, durationMs, phase, address, responseStatus, error, responseSnippet } = attempt;
  const unknown = status === 'PENDING' ? 'in progress, or cut off' : 'cut off';
  const verdict = durationMs === null ? unknown : (error ?? 'delivered');
  return html`<li>
    <p><strong>${number}</strong> <time>${startedAt}</time></p>
    <p class="${error === null && durationMs !== null ? 'good' : 'bad'}">${verdict}</p>
    <p class="dim">
      ${[
        responseStatus === null ? null : `status ${responseStatus}`,
        durationMs === null ? null : `${durationMs} ms`,
        phase === null ? null : `reached ${phase}`,
        address,
      ]
        .filter((fact) => fact !== null)
        .join(' · ')}
    </p>
    ${responseSnippet === null ? null : html`<pre>${responseSnippet}</pre>`}
  </li>`;
}
