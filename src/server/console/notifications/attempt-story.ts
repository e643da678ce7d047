import { type Html, html } from '../../../http/html.js';
import type { AttemptView, WebhookView } from '../../../webhooks/webhook-view.js';
import { time } from '../frame/parts.js';

/** One attempt in the timeline: when, how it ended, what that means, what to do, and what the receiver answered. */
export function attemptStory(attempt: AttemptView, status: WebhookView['status']): Html {
  const { number, startedAt, durationMs, phase, address, responseStatus, error, diagnosis, responseSnippet } = attempt;
  const unknown = status === 'PENDING' ? 'in progress, or cut off' : 'cut off';
  const verdict = durationMs === null ? unknown : (error ?? 'delivered');
  const kind = error === null && durationMs !== null ? 'good' : 'bad';
  const technical = [
    responseStatus === null ? null : `status ${responseStatus}`,
    durationMs === null ? null : `${durationMs} ms`,
    phase === null ? null : `reached ${phase}`,
    address,
  ];
  return html`<li class="is-${kind}">
    <p><strong>${number}</strong> ${time(Date.parse(startedAt))}</p>
    <p class="${kind}">${verdict}</p>
    ${diagnosis && html`<p>${diagnosis.meaning} <strong>${diagnosis.remedy}</strong></p>`}
    <p class="dim">${technical.filter((fact) => fact !== null).join(' · ')}</p>
    ${responseSnippet === null ? null : html`<pre>${responseSnippet}</pre>`}
  </li>`;
}
