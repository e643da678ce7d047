import { type Html, html } from '../../../http/html.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import type { HostFigures } from '../../../webhooks/figures/delivery-figures.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import { figuresTable } from '../figures/figures-table.js';
import { ratio, shownMs, shownQuantile } from '../figures/numbers.js';
import { figuresOfPoints, type Range } from '../figures/periods.js';
import type { Visit } from '../frame/pages.js';
import {
  clientLink,
  type Column,
  emptyState,
  facts,
  notice,
  statusBadge,
  table,
  tiles,
  time,
  webhookLink,
} from '../frame/parts.js';
import { type Answer, MAX_NOTIFICATIONS, type UrlAnswers } from './answers.js';
import type { HostClient, Receiver } from './receivers-data.js';

export interface ShownReceiver {
  /** The links to other ranges. */
  ranges: Html;
  range: Range;
  receiver: Receiver;
  /** The result of a test that was sent just now. */
  test: TestResult | null;
}

export function receiverPage(visit: Visit, { ranges, range, receiver, test }: ShownReceiver): Html {
  const { points, clients, answers } = receiver;
  const figures = html`${totals(receiver)}
    <div class="columns">
      <div class="card">${attemptsChart(points, range.periodMs)}</div>
      <div class="card">${timesChart('Time of an attempt', points, range.periodMs, ({ duration }) => duration)}</div>
    </div>
    ${figuresTable(points, range.periodMs)}
    <h2>Clients</h2>
    ${table(CLIENT_COLUMNS, clients)}`;
  const attempts = html`<h2>Notify URLs</h2>
    <p class="hint">The attempts of the newest notifications, at most ${MAX_NOTIFICATIONS} of them.</p>
    ${table(URL_COLUMNS, answers.urls)}
    <h2>Last answers</h2>
    ${table(ANSWER_COLUMNS, answers.last)}`;
  return html`${test && testOutcome(test)} ${clients.map(failingNotice)} ${ranges}
  ${clients.length === 0 ? emptyState(noAttempts(range)) : figures} ${testForm(visit, clients)}
  ${answers.last.length === 0 ? emptyState('No answer among the newest notifications of these clients.') : attempts}`;
}

export const noAttempts = ({ name }: Range): string =>
  `No attempts in the ${name.toLowerCase()}. Each host that notifications are sent to is shown here.`;

/** Why a host fails, in words. */
export const reasonOf = ({ lastDiagnosis, lastError }: FailingHost): string =>
  lastDiagnosis === null ? lastError : DIAGNOSES[lastDiagnosis].meaning;

function failingNotice({ client, failing }: HostClient): Html | null {
  if (failing === null) return null;
  const remedy = failing.lastDiagnosis === null ? null : DIAGNOSES[failing.lastDiagnosis].remedy;
  return notice(
    'warning',
    html`<strong>Fails for ${clientLink(client)} since ${time(failing.failingSince)}.</strong> ${reasonOf(failing)}
      ${remedy}`,
  );
}

function totals({ points }: Receiver): Html {
  const { attempts, failures, successRate, duration, receipt, averageMs } = figuresOfPoints(points);
  return tiles([
    { name: 'Attempts', value: attempts },
    { name: 'Failed', value: failures, ...(failures > 0 && { kind: 'bad' as const }) },
    { name: 'Succeeded', value: ratio(successRate) },
    { name: 'Attempt, p50', value: shownQuantile(duration.p50) },
    { name: 'Attempt, p95', value: shownQuantile(duration.p95) },
    { name: 'Attempt, average', value: averageMs === null ? null : shownMs(averageMs) },
    { name: 'Time to receipt, p50', value: shownQuantile(receipt.p50) },
    { name: 'Time to receipt, p95', value: shownQuantile(receipt.p95) },
  ]);
}

/** The figures of a host or of a client at it. */
export const FIGURES: Column<{ figures: HostFigures['figures'] }>[] = [
  { name: 'Attempts', isNumber: true, cell: ({ figures }) => figures.attempts },
  { name: 'Failed', isNumber: true, cell: ({ figures }) => figures.failures },
  { name: 'Succeeded', isNumber: true, cell: ({ figures }) => ratio(figures.successRate) },
  { name: 'p50', isNumber: true, cell: ({ figures }) => shownQuantile(figures.duration.p50) },
  { name: 'p95', isNumber: true, cell: ({ figures }) => shownQuantile(figures.duration.p95) },
];

const CLIENT_COLUMNS: Column<HostClient>[] = [
  { name: 'Client', cell: ({ client }) => clientLink(client) },
  { name: 'Notify URL', cell: ({ notifyUrl }) => notifyUrl },
  ...FIGURES,
  { name: 'Failing since', cell: ({ failing }) => time(failing?.failingSince ?? null) },
];

const URL_COLUMNS: Column<UrlAnswers>[] = [
  { name: 'Notify URL', cell: ({ notifyUrl }) => notifyUrl },
  { name: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { name: 'Failed', isNumber: true, cell: ({ failures }) => failures },
  { name: 'Median', isNumber: true, cell: ({ medianMs }) => shownMs(medianMs) },
  { name: 'Last answer', cell: ({ last }) => answerBadge(last) },
  { name: 'Time', cell: ({ last }) => time(last.startedAt) },
];

const answerBadge = ({ responseStatus, error }: WebhookAttempt): Html =>
  statusBadge(responseStatus === null ? 'no answer' : String(responseStatus), error === null ? 'good' : 'bad');

const ANSWER_COLUMNS: Column<Answer>[] = [
  { name: 'Time', cell: ({ attempt }) => time(attempt.startedAt) },
  { name: 'Client', cell: ({ client }) => clientLink(client) },
  { name: 'Notification', cell: ({ attempt }) => webhookLink(attempt.webhookId) },
  { name: 'Attempt', isNumber: true, cell: ({ attempt }) => attempt.number },
  { name: 'Answer', cell: ({ attempt }) => answerBadge(attempt) },
  {
    name: 'Took',
    isNumber: true,
    cell: ({ attempt: { durationMs } }) => (durationMs === null ? null : shownMs(durationMs)),
  },
  {
    name: 'Meaning',
    cell: ({ attempt: { diagnosis, error } }) =>
      diagnosis === null ? (error ?? 'Delivered.') : DIAGNOSES[diagnosis].meaning,
  },
];

/** Only for clients whose Notify URL here is known. */
function testForm(visit: Visit, clients: HostClient[]): Html | null {
  const known = clients.filter(({ notifyUrl }) => notifyUrl !== null);
  if (known.length === 0) return null;
  const fields = html`<label>
    Client
    <select name="client">
      ${known.map(({ client }) => html`<option value="${client.id}">${client.name === '' ? client.id : client.name}</option>`)}
    </select>
    <span class="hint">
      A signed sample goes to the Notify URL of this client. Its header <code>X-Webhook-Test: true</code> marks it; it
      is not stored and not repeated.
    </span>
  </label>`;
  const form = visit.form('test', fields);
  return (
    form &&
    html`<h2>Send a test</h2>
      ${form}`
  );
}

function testOutcome(test: TestResult): Html {
  const { notifyUrl, outcome, responseStatus, durationMs, error, diagnosis, responseSnippet, address } = test;
  const isGood = outcome === 'delivered';
  return html`${notice(isGood ? 'good' : 'bad', isGood ? 'The test was accepted.' : html`<strong>The test failed: ${error}.</strong> ${diagnosis?.meaning ?? null} ${diagnosis?.remedy ?? null}`)}
  ${facts([
    ['sent to', notifyUrl],
    ['status', responseStatus],
    ['took', shownMs(durationMs)],
    ['address', address],
    ['answer', responseSnippet && html`<pre>${responseSnippet}</pre>`],
  ])}`;
}
