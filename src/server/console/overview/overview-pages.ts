import { Injectable } from '@nestjs/common';
import { AuditLog } from '../../../audit/audit.module.js';
import { type Html, html } from '../../../http/html.js';
import type { Due } from '../../../webhooks/usher-health.js';
import { Backlog, type QueueDepth } from '../../health/backlog.js';
import { type Answers, answersOf } from '../../health/cached-query.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import {
  figuresOfPoints,
  figuresTable,
  type Point,
  type Range,
  ratio,
  shownMs,
  shownQuantile,
} from '../figures/figures.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { type Columns, emptyState, notice, table, tiles } from '../../../http/pages/parts.js';
import { clientLink } from '../frame/links.js';
import { searchHref } from '../search/search-pages.js';
import { MAX_PENDING, OverviewData } from './overview-data.js';
import { problemNotice, problemsOf, queueTable, shownCount, type ShownQueue, type State } from './problems.js';

type Overview = State & Answers<OverviewData['queries']>;

/** The first page. */
@Injectable()
export class OverviewPages {
  constructor(
    private readonly data: OverviewData,
    private readonly backlog: Backlog,
    private readonly audit: AuditLog,
  ) {}

  readonly pages: Page[] = [{ path: '/ops', show: (visit) => this.show(visit) }];

  private async show({ query: { q = '' } }: Visit): Promise<View | string> {
    if (q !== '') return searchHref(q);
    const state = await answersOf({ ...this.data.queries, ...this.backlog.queries });
    const queues = state.queues && (await Promise.all(state.queues.map((queue) => this.shown(queue))));
    return { title: 'Overview', section: 'overview', body: overview({ ...state, queues }), isLive: true };
  }

  private async shown(depth: QueueDepth): Promise<ShownQueue> {
    if (!depth.isPaused) return depth;
    const subjects = [`queue:${depth.queue}`, 'queue:all'];
    const found = await Promise.all(
      subjects.map((subject) => this.audit.list({ subject, action: 'queue.paused', limit: 1 }).catch(() => [])),
    );
    const [paused] = found.flat().sort((a, b) => b.createdAt - a.createdAt);
    return { ...depth, paused };
  }
}

function overview(state: Overview): Html {
  const { ranges, pending, queues, hasClients } = state;
  const isNew = ranges?.every(({ points }) => points.every(({ figures }) => figures.attempts === 0)) ?? false;
  return html`${verdict(state, isNew)} ${totals(state)}
    ${isNew ? firstSteps(hasClients ?? true) : html`<div class="columns three">${ranges?.map(rangeCard)}</div>`}
    <div class="columns">
      <section>
        <h2>Pending by client</h2>
        ${pending && pendingTable(pending)}
      </section>
      <section>
        <h2>Queues</h2>
        ${queues && queueTable(queues)}
      </section>
    </div>`;
}

function verdict(state: Overview, isNew: boolean): Html | Html[] | false {
  const problems = problemsOf(state);
  if (problems.length > 0) return problems.map(problemNotice);
  return !isNew && notice('good', 'Notifications reach their receivers. No fault is known.');
}

function totals({ due, ranges }: Overview): Html {
  const lastHour = ranges?.[0] && figuresOfPoints(ranges[0].points);
  const { successRate = null, receipt, delivered = null, endedFailed = null } = lastHour ?? {};
  return tiles({
    'Attempts succeeded, 1 h': [ratio(successRate), rateKind(successRate)],
    'Time to receipt p50, 1 h': shownQuantile(receipt?.p50),
    'Time to receipt p95, 1 h': shownQuantile(receipt?.p95),
    'Delivered, 1 h': delivered,
    'Ended FAILED, 1 h': [endedFailed, endedFailed ? 'bad' : null],
    'Due now': due && shownDue(due),
  });
}

/** Milliseconds that something is due are no delay. */
const shownDue = ({ count, oldestAgeMs }: Due): string =>
  shownCount(count) + (oldestAgeMs < 1_000 ? '' : `, the oldest for ${shownMs(oldestAgeMs)}`);

function rateKind(rate: number | null) {
  if (rate === null) return null;
  return rate >= 0.99 ? 'good' : rate >= 0.9 ? 'warning' : 'bad';
}

function rangeCard({ range, points }: { range: Range; points: Point[] }): Html {
  const { successRate, delivered, endedFailed, receipt } = figuresOfPoints(points);
  return html`<section class="card">
    <h2>${range.name}</h2>
    <p>
      <strong>${ratio(successRate)}</strong> of attempts succeeded · ${delivered} delivered, ${endedFailed} ended FAILED
      · time to receipt p50 <strong>${shownQuantile(receipt.p50)}</strong>, p95
      <strong>${shownQuantile(receipt.p95)}</strong>
    </p>
    ${attemptsChart(points)} ${timesChart('Time to receipt', points, ({ receipt }) => receipt)} ${figuresTable(points)}
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

function pendingTable({ clients, isCapped }: NonNullable<Overview['pending']>): Html {
  const columns: Columns<(typeof clients)[number]> = {
    Client: ({ client }) => clientLink(client),
    Pending: { number: ({ pending }) => pending },
  };
  return html`${table(columns, clients, 'Nothing is pending: every notification has ended.')}
  ${isCapped && html`<p class="dim">Counted among the ${MAX_PENDING} that are due first; there are more.</p>`}`;
}
