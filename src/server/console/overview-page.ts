import { type Html, html } from '../../http/html.js';
import type { WebhookView } from '../../webhooks/webhook-view.js';
import type { Due, QueueDepth } from '../health/backlog.js';
import type { RecentActivity, Receiver } from './activity.js';
import { attemptsChart } from './attempts-chart.js';

const MAX_RECEIVERS = 5;

/** `pausedBy`: the actor and the time, or null if it is not paused or the audit does not say. */
export type ShownQueue = QueueDepth & { pausedBy: string | null };

export interface Overview {
  recent: RecentActivity | null;
  due: Due | null;
  queues: ShownQueue[] | null;
}

export function overview({ recent, due, queues }: Overview): Html {
  return html`${(queues ?? []).map(stopped)}
    <h2>Today (UTC)</h2>
    <dl class="tiles">
      ${tile('Delivered', recent?.today.SUCCESS, 'good')} ${tile('Failed', recent?.today.FAILED, 'bad')}
      ${tile('Pending', recent?.today.PENDING)} ${tile('Due now', due?.count)}
      ${tile('Oldest due for', due && `${Math.round(due.oldestAgeMs / 1_000)} s`)}
    </dl>
    ${recent && activity(recent)}
    <h2>Queues</h2>
    ${queues ? depths(queues) : html`<p class="note">The queue does not answer.</p>`}`;
}

/** Says so at the top if a queue is paused or limited, because nothing else on the page would explain it. */
function stopped({ queue, isPaused, limit, pausedBy }: ShownQueue): Html | null {
  if (!isPaused && limit === null) return null;
  const what = isPaused ? `is paused${pausedBy === null ? '' : ` by ${pausedBy}`}` : `is limited: ${limit}`;
  return html`<p class="note" role="alert">
    The queue <a href="/ops/queues/queue/${queue}">${queue}</a> ${what}. Its jobs wait.
  </p>`;
}

const tile = (name: string, value: string | number | null | undefined, kind = ''): Html =>
  html`<div>
    <dt>${name}</dt>
    <dd class="${kind}">${value ?? '–'}</dd>
  </div>`;

function activity({ receivers, intervals, failed }: RecentActivity): Html {
  const failing = receivers.filter(({ failures }) => failures > 0).sort((a, b) => b.failures - a.failures);
  const slowest = [...receivers].sort((a, b) => b.averageMs - a.averageMs);
  return html`<h2>Attempts</h2>
    ${attemptsChart(intervals)}
    <h2>Failed in the last 24 hours</h2>
    ${webhookTable(failed, 'None.')}
    <h2>Receivers with the most failures</h2>
    ${receiverTable(failing)}
    <h2>Slowest receivers</h2>
    ${receiverTable(slowest)}`;
}

function receiverTable(receivers: Receiver[]): Html {
  if (receivers.length === 0) return html`<p class="dim">None.</p>`;
  const rows = receivers.slice(0, MAX_RECEIVERS).map(
    ({ origin, attempts, failures, averageMs }) =>
      html`<tr>
        <td>${origin}</td>
        <td class="n">${attempts}</td>
        <td class="n">${failures}</td>
        <td class="n">${averageMs} ms</td>
      </tr>`,
  );
  return html`<div class="wide">
    <table>
      <tr>
        <th>receiver</th>
        <th class="n">attempts</th>
        <th class="n">failed</th>
        <th class="n">average</th>
      </tr>
      ${rows}
    </table>
  </div>`;
}

export function webhookTable(webhooks: WebhookView[], none: string): Html {
  if (webhooks.length === 0) return html`<p class="dim">${none}</p>`;
  const rows = webhooks.map(
    ({ id, referenceId, clientId, status, attempts, createdAt }) =>
      html`<tr>
        <td><a href="/ops/webhooks/${id}">${id}</a></td>
        <td class="${status}">${status}</td>
        <td class="n">${attempts}</td>
        <td>${createdAt}</td>
        <td>${referenceId}</td>
        <td>${clientId}</td>
      </tr>`,
  );
  return html`<div class="wide">
    <table>
      <tr>
        <th>webhook</th>
        <th>status</th>
        <th class="n">attempts</th>
        <th>created</th>
        <th>order</th>
        <th>client</th>
      </tr>
      ${rows}
    </table>
  </div>`;
}

function depths(queues: ShownQueue[]): Html {
  const states = Object.keys(queues[0]?.jobs ?? {});
  const rows = queues.map(
    ({ queue, isPaused, limit, jobs }) =>
      html`<tr>
        <td>
          <a href="/ops/queues/queue/${queue}">${queue}</a>${isPaused ? html` <span class="bad">paused</span>` : null}
          ${limit === null ? null : html` <span class="bad">limited</span>`}
        </td>
        ${states.map((state) => html`<td class="n">${jobs[state] ?? 0}</td>`)}
      </tr>`,
  );
  return html`<div class="wide">
    <table>
      <tr>
        <th>queue</th>
        ${states.map((state) => html`<th class="n">${state}</th>`)}
      </tr>
      ${rows}
    </table>
  </div>`;
}
