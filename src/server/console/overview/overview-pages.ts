import { AuditLog } from '../../../audit/audit.module.js';
import { html } from '../../../http/html.js';
import { acknowledge } from '../../../webhooks/contact/alarms.js';
import { MAX_NOTE_LENGTH } from '../../../webhooks/contact/failing-host.entity.js';
import { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import { DeliveryFigures } from '../../../webhooks/figures/delivery-figures.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import { WebhookSearch } from '../../../webhooks/search/webhook-search.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import type { Due } from '../../../webhooks/usher-health.js';
import { Backlog, type QueueDepth } from '../../health/backlog.js';
import { answersOf } from '../../health/cached-query.js';
import { charts } from '../figures/charts.js';
import {
  figuresOfPoints,
  type Range,
  rangeLinks,
  rangeOf,
  ratio,
  shownMs,
  shownQuantile,
  withChange,
} from '../figures/figures.js';
import { hiddenFields, hrefOf, inputField } from '../../../http/pages/fields.js';
import { definePage, pagesWith, type Visit } from '../../../http/pages/site.js';
import { emptyState, notice, statusBadge, table, tiles } from '../../../http/pages/parts.js';
import { clientLink } from '../frame/links.js';
import { listHref } from '../notifications/notification-list.js';
import { pauseActions } from '../receivers/receiver-parts.js';
import { type FailingClient, MAX_PENDING, type OverviewAnswers, overviewData } from './overview-data.js';
import { failure, pausedDeliveries, problemsOf, queueTable, shownCount, type State } from './problems.js';

const MAX_SHOWN = 50;

type Overview = State & OverviewAnswers & { range: Range };

export const overviewPages = pagesWith(
  [DeliveryFigures, WebhookSearch, Backlog, AuditLog, WebhookResends, DeliveryPauses],
  (figures, search, backlog, audit, resends, pauses, { dataSource }) => {
    const data = overviewData(dataSource, figures, search);

    /** With the event that paused it, if the audit knows it. */
    async function shown(depth: QueueDepth) {
      if (!depth.isPaused) return depth;
      const subjects = [`queue:${depth.queue}`, 'queue:all'];
      const found = await Promise.all(
        subjects.map((subject) => audit.list({ subject, action: 'queue.paused', limit: 1 }).catch(() => [])),
      );
      const [paused] = found.flat().sort((a, b) => b.createdAt - a.createdAt);
      return { ...depth, paused };
    }

    return [
      definePage<FailingClient>({
        path: '/ops',
        show: async (visit) => {
          const { q = '', ...given } = visit.refusal?.given ?? visit.query;
          if (q !== '') return hrefOf('/ops/search', { q });
          const range = rangeOf(given);
          const state = await answersOf({ ...data.queries(range), ...backlog.queries });
          const queues = state.queues && (await Promise.all(state.queues.map(shown)));
          return {
            title: 'Overview',
            body: overview(visit, { ...state, queues, range, request: visit.request }),
            isLive: visit.refusal === null,
          };
        },
        actions: {
          'resume-queue': {
            button: 'Resume',
            done: 'The queue is resumed.',
            run: ({ queue = '' }, { actor }) =>
              backlog.resume(queue, () => audit.record({ action: 'queue.resumed', subject: `queue:${queue}`, actor })),
          },
          resend: {
            button: 'Send all of them again',
            kind: 'primary',
            fields: ({ client, since, until }) =>
              hiddenFields({ client: client.id, since: `${since}`, until: `${until}` }),
            answer: async ({ client: clientId = '', since = '', until = '' }, visit) => {
              // A form without its times selects nothing.
              const [from, to] = [Number(since) || Date.now(), Number(until) || 1];
              const lost = { ...ANY_WEBHOOK, clientId, endedSince: from, until: to, isSentAgain: false };
              return `/ops/resends/${await resends.startFor(lost, visit)}`;
            },
          },
          acknowledge: {
            button: 'Acknowledge',
            fields: ({ client, range, alarming }) => [
              ...hiddenFields({ client: client.id, range, hosts: alarming.join(' ') }),
              inputField({ name: 'note', label: 'Note', maxLength: MAX_NOTE_LENGTH, isRequired: true }),
            ],
            done: 'Acknowledged. It is an alarm again as soon as a notification to this receiver ends FAILED.',
            run: async ({ client: clientId = '', hosts = '', note = '' }, { actor }) => {
              const alarms = { clientId, hosts: hosts.split(' '), note: note.trim(), actor };
              await acknowledge(dataSource, audit, alarms);
              await data.changed();
            },
          },
          ...pauseActions<FailingClient>(
            'client',
            pauses,
            () => data.changed(),
            ({ client, range }) => hiddenFields({ client: client.id, range }),
          ),
        },
      }),
    ];
  },
);

function overview(visit: Visit, state: Overview) {
  const { range, points, losses, pending, queues, isQueueUp } = state;
  const isNew = points?.every(({ figures }) => figures.attempts === 0) ?? false;
  return html`${verdict(state, isNew)}
    <div class="actions">
      ${rangeLinks('/ops', range)} ${visit.mayChange && html`<a class="button" href="/ops/clients/new">New client</a>`}
    </div>
    ${losses && losses.clients.length > 0 && failingTable(visit, losses.clients)} ${totals(state)}
    ${isNew ? nothingSent(state) : points && charts(points, 'Time to receipt', ({ receipt }) => receipt)}
    <div class="columns">
      <section>
        <h2>Pending by client</h2>
        ${pending && pendingTable(pending)}
      </section>
      <section>
        <h2>Queues</h2>
        ${queueTable(queues, isQueueUp)}
      </section>
    </div>`;
}

function verdict(state: Overview, isNew: boolean) {
  const problems = [...problemsOf(state), ...pausedDeliveries(state.pauses ?? [])];
  const { losses, clientCount, range } = state;
  const clients = losses?.clients ?? [];
  const failing = clients.filter(({ alarming }) => alarming.length > 0).length;
  const lost = clients.reduce((sum, client) => sum + client.lost, 0);
  const isCapped = clients.some((client) => client.isCapped);
  const fail = failing === 1 ? 'fails' : 'fail';
  const who = failing === 0 ? 'No client fails' : `${failing} of ${clientCount ?? failing} clients ${fail}`;
  const what =
    lost === 0 && !isCapped
      ? 'no notification lost'
      : `${atLeast(lost, isCapped)} notification${lost === 1 && !isCapped ? '' : 's'} not delivered`;
  return html`${
    clients.length > 0
      ? notice(
          failing > 0 ? 'bad' : 'warning',
          html`<strong>${who}; ${what} in the ${range.name.toLowerCase()}.</strong>`,
        )
      : problems.length === 0 &&
        losses &&
        !isNew &&
        (losses.isAnyAcknowledged
          ? notice('warning', ACKNOWLEDGED)
          : notice('good', 'Notifications reach their receivers. No fault is known.'))
  }
  ${problems}`;
}

const ACKNOWLEDGED =
  'No alarm is left, but receivers whose alarm was acknowledged still fail. No other fault is known.';

const atLeast = (count: number, isCapped: boolean) => `${count.toLocaleString('en')}${isCapped ? ' or more' : ''}`;

/** What each client has lost, and what can be done about it. The client that has lost the most is first. */
const failingTable = (visit: Visit, clients: FailingClient[]) =>
  table(
    {
      Client: ({ client, isPaused }) => html`${clientLink(client)} ${isPaused && statusBadge('paused')}`,
      'Not delivered': {
        number: (row) => html`<a href="${lostHref(row)}">${atLeast(row.lost, row.isCapped)}</a>`,
      },
      'Ended FAILED, a week before': { number: ({ ended, before }) => withChange(ended, before, String) },
      Receivers: ({ hosts }) => html`${hosts.map((host) => html`<div>${failure(host)}</div>`)}`,
      Actions: (row) => actions(visit, row),
    },
    clients.slice(0, MAX_SHOWN),
  );

const lostHref = ({ client, since }: FailingClient) =>
  listHref({ client: client.id, status: 'UNRESOLVED', endedSince: new Date(since).toISOString() });

/** Each opens its form, except for the one that resumes. */
function actions(visit: Visit, row: FailingClient) {
  if (!visit.mayChange) return null;
  // By its id a refresh finds the form again when the rows have another order.
  const formOf = (name: string) => visit.form(name, row, `${name}-${row.client.id}`);
  const form = (name: string, summary: string) =>
    html`<details>
      <summary>${summary}</summary>
      ${formOf(name)}
    </details>`;
  return html`${row.lost > 0 && form('resend', 'Send again')}
  ${row.alarming.length > 0 && form('acknowledge', 'Acknowledge')}
  ${row.isPaused ? formOf('resume') : form('pause', 'Pause')}`;
}

function totals({ due, points, losses }: Overview) {
  const { successRate = null, receipt, delivered = null, endedFailed = null } = points ? figuresOfPoints(points) : {};
  return tiles({
    'Attempts succeeded': [ratio(successRate), rateKind(successRate)],
    'Time to receipt p50': shownQuantile(receipt?.p50),
    'Time to receipt p95': shownQuantile(receipt?.p95),
    Delivered: delivered,
    'Ended FAILED': [
      losses &&
        html`<a href="${listHref({ status: 'FAILED', endedSince: new Date(losses.since).toISOString() })}"
          >${endedFailed}</a
        >`,
      endedFailed ? 'bad' : null,
    ],
    'Due now': due && shownDue(due),
  });
}

/** A notification that has been due for less than a second is not late. */
const shownDue = ({ count, oldestAgeMs }: Due) =>
  shownCount(count) + (oldestAgeMs < 1_000 ? '' : `, the oldest for ${shownMs(oldestAgeMs)}`);

function rateKind(rate: number | null) {
  if (rate === null) return null;
  return rate >= 0.99 ? 'good' : rate >= 0.9 ? 'warning' : 'bad';
}

function nothingSent({ clientCount, range }: Overview) {
  if (clientCount !== 0)
    return emptyState(
      html`No notification was sent in the ${range.name.toLowerCase()}. When an order of a client is completed, the
        attempts and the time to receipt are shown here. A test can be sent from the page of a
        <a href="/ops/clients">client</a>.`,
    );
  return emptyState(
    html`There is no client yet. <a href="/ops/clients">Create the first one</a>, or run
      <code>usher client create NAME --notify-url URL</code>. Its id and secret go to the integrator; what is sent to it
      is shown here.`,
  );
}

function pendingTable({ clients, isCapped }: NonNullable<Overview['pending']>) {
  return html`${table(
    { Client: ({ client }) => clientLink(client), Pending: { number: 'pending' } },
    clients,
    'Nothing is pending: every notification has ended.',
  )}
  ${isCapped && html`<p class="dim">Counted among the ${MAX_PENDING} that are due first; there are more.</p>`}`;
}
