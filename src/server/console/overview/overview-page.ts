import { type Html, html } from '../../../http/html.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import { figuresTable } from '../figures/figures-table.js';
import { ratio, shownMs, shownQuantile } from '../figures/numbers.js';
import {
  figuresOfPoints,
  FIVE_MINUTES_MS,
  HOUR_MS,
  LAST_DAY,
  LAST_HOUR,
  LAST_WEEK,
  type Point,
  pointsOf,
  type Range,
} from '../figures/periods.js';
import type { Due } from '../../health/backlog.js';
import { clientLink, type Column, emptyState, notice, table, tiles } from '../frame/parts.js';
import { type Deliveries, MAX_PENDING, type Pending } from './overview-data.js';
import { problemNotice, problemsOf, queueTable, type State } from './problems.js';

export interface Overview extends State {
  deliveries: Deliveries | null;
  pending: Pending | null;
  hasClients: boolean;
}

interface Shown {
  range: Range;
  points: Point[];
}

export function overview(state: Overview): Html {
  const { deliveries, pending, queues, hasClients } = state;
  const ranges = deliveries && rangesOf(deliveries);
  const isNew = ranges?.every(({ points }) => points.every(({ figures }) => figures.attempts === 0)) ?? false;
  return html`${verdict(state, isNew)} ${totals(state, ranges?.[0]?.points ?? null)}
    ${isNew ? firstSteps(hasClients) : html`<div class="columns three">${(ranges ?? []).map(rangeCard)}</div>`}
    <div class="columns">
      <section>
        <h2>Pending by client</h2>
        ${pending ? pendingTable(pending) : null}
      </section>
      <section>
        <h2>Queues</h2>
        ${queues ? queueTable(queues) : null}
      </section>
    </div>`;
}

const rangesOf = ({ now, ofHour, ofWeek }: Deliveries): Shown[] => [
  { range: LAST_HOUR, points: pointsOf(LAST_HOUR, now, ofHour, FIVE_MINUTES_MS) },
  ...[LAST_DAY, LAST_WEEK].map((range) => ({ range, points: pointsOf(range, now, ofWeek, HOUR_MS) })),
];

function verdict(state: Overview, isNew: boolean): Html {
  const problems = problemsOf(state);
  if (problems.length > 0) return html`${problems.map(problemNotice)}`;
  if (isNew) return html``;
  return notice('good', 'Notifications reach their receivers. No fault is known.');
}

function totals({ due }: Overview, points: Point[] | null): Html {
  const all = points && figuresOfPoints(points);
  return tiles([
    { name: 'Attempts succeeded, 1 h', value: all && ratio(all.successRate), ...rateKind(all?.successRate) },
    { name: 'Time to receipt p50, 1 h', value: all && shownQuantile(all.receipt.p50) },
    { name: 'Time to receipt p95, 1 h', value: all && shownQuantile(all.receipt.p95) },
    { name: 'Delivered, 1 h', value: all && all.delivered },
    {
      name: 'Ended FAILED, 1 h',
      value: all && all.endedFailed,
      ...(all && all.endedFailed > 0 && { kind: 'bad' as const }),
    },
    { name: 'Due now', value: due && shownDue(due) },
  ]);
}

/** Milliseconds that something is due are no delay. */
const shownDue = ({ count, oldestAgeMs }: Due): string =>
  oldestAgeMs < 1_000 ? String(count) : `${count}, the oldest for ${shownMs(oldestAgeMs)}`;

function rateKind(rate: number | null | undefined): { kind?: 'good' | 'warning' | 'bad' } {
  if (rate === null || rate === undefined) return {};
  return { kind: rate >= 0.99 ? 'good' : rate >= 0.9 ? 'warning' : 'bad' };
}

function rangeCard({ range, points }: Shown): Html {
  const { successRate, delivered, endedFailed, receipt } = figuresOfPoints(points);
  return html`<section class="card">
    <h2>${range.name}</h2>
    <p>
      <strong>${ratio(successRate)}</strong> of attempts succeeded · ${delivered} delivered, ${endedFailed} ended FAILED
      · time to receipt p50 <strong>${shownQuantile(receipt.p50)}</strong>, p95
      <strong>${shownQuantile(receipt.p95)}</strong>
    </p>
    ${attemptsChart(points, range.periodMs)}
    ${timesChart('Time to receipt', points, range.periodMs, ({ receipt }) => receipt)}
    ${figuresTable(points, range.periodMs)}
  </section>`;
}

function firstSteps(hasClients: boolean): Html {
  if (hasClients)
    return emptyState(
      html`No notification was sent in the last 7 days. When an order of a client is completed, the attempts and the
        time to receipt are shown here. A test can be sent from the page of a <a href="/ops/clients">client</a>.`,
    );
  return emptyState(
    html`There is no client yet. <a href="/ops/clients">Create the first one</a>, or run
      <code>usher client create NAME --notify-url URL</code>. Its id and secret go to the integrator; what is sent to it
      is shown here.`,
  );
}

function pendingTable({ clients, isCapped }: Pending): Html {
  const columns: Column<(typeof clients)[number]>[] = [
    { name: 'Client', cell: ({ client }) => clientLink(client) },
    { name: 'Pending', isNumber: true, cell: ({ count }) => count },
  ];
  return html`${table(columns, clients, 'Nothing is pending: every notification has ended.')}
  ${isCapped ? html`<p class="dim">Counted among the ${MAX_PENDING} that are due first; there are more.</p>` : null}`;
}
