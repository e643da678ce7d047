import { type Html, html } from '../../../http/html.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import type { HostFigures } from '../../../webhooks/figures/delivery-figures.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import {
  ATTEMPTS,
  figuresOfPoints,
  figuresTable,
  type Point,
  type Range,
  ratio,
  shownMs,
  shownQuantile,
} from '../figures/figures.js';
import type { Visit } from '../frame/pages.js';
import {
  clientLink,
  type Columns,
  emptyState,
  facts,
  notice,
  statusBadge,
  table,
  tiles,
  time,
  webhookLink,
} from '../frame/parts.js';
import { type HostClient, MAX_NOTIFICATIONS, type Receiver, type UrlAnswers } from './receivers-data.js';

/** `ranges`: the links to other ranges. `test`: the result of a test that was sent just now. */
export function receiverPage(
  visit: Visit,
  { points, clients, answers }: Receiver,
  { range, ranges, test }: { range: Range; ranges: Html; test: TestResult | null },
): Html {
  const figures = html`${totals(points)}
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

const failingNotice = ({ client, failing }: HostClient): Html | null =>
  failing &&
  notice(
    'warning',
    html`<strong>Fails for ${clientLink(client)} since ${time(failing.failingSince)}.</strong> ${reasonOf(failing)}
      ${failing.lastDiagnosis && DIAGNOSES[failing.lastDiagnosis].remedy}`,
  );

function totals(points: Point[]): Html {
  const { attempts, failures, successRate, duration, receipt, averageMs } = figuresOfPoints(points);
  return tiles({
    Attempts: attempts,
    Failed: [failures, failures > 0 ? 'bad' : null],
    Succeeded: ratio(successRate),
    'Attempt, p50': shownQuantile(duration.p50),
    'Attempt, p95': shownQuantile(duration.p95),
    'Attempt, average': averageMs === null ? null : shownMs(averageMs),
    'Time to receipt, p50': shownQuantile(receipt.p50),
    'Time to receipt, p95': shownQuantile(receipt.p95),
  });
}

/** The figures of a host or of a client at it. */
export const FIGURES: Columns<Pick<HostFigures, 'figures'>> = {
  ...ATTEMPTS,
  p50: { number: ({ figures }) => shownQuantile(figures.duration.p50) },
  p95: { number: ({ figures }) => shownQuantile(figures.duration.p95) },
};

const CLIENT_COLUMNS: Columns<HostClient> = {
  Client: ({ client }) => clientLink(client),
  'Notify URL': ({ notifyUrl }) => notifyUrl,
  ...FIGURES,
  'Failing since': ({ failing }) => time(failing && failing.failingSince),
};

const URL_COLUMNS: Columns<UrlAnswers> = {
  'Notify URL': ({ notifyUrl }) => notifyUrl,
  Attempts: { number: ({ attempts }) => attempts },
  Failed: { number: ({ failures }) => failures },
  Median: { number: ({ medianMs }) => shownMs(medianMs) },
  'Last answer': ({ last }) => answerBadge(last),
  Time: ({ last }) => time(last.startedAt),
};

const answerBadge = ({ responseStatus, error }: WebhookAttempt): Html =>
  statusBadge(responseStatus === null ? 'no answer' : String(responseStatus), error === null ? 'good' : 'bad');

const ANSWER_COLUMNS: Columns<Receiver['answers']['last'][number]> = {
  Time: ({ attempt }) => time(attempt.startedAt),
  Client: ({ client }) => clientLink(client),
  Notification: ({ attempt }) => webhookLink(attempt.webhookId),
  Attempt: { number: ({ attempt }) => attempt.number },
  Answer: ({ attempt }) => answerBadge(attempt),
  Took: { number: ({ attempt: { durationMs } }) => (durationMs === null ? null : shownMs(durationMs)) },
  Meaning: ({ attempt: { diagnosis, error } }) =>
    diagnosis === null ? (error ?? 'Delivered.') : DIAGNOSES[diagnosis].meaning,
};

/** Only for clients whose Notify URL here is known. */
function testForm(visit: Visit, clients: HostClient[]): Html | null {
  const known = clients.filter(({ notifyUrl }) => notifyUrl !== null);
  if (known.length === 0) return null;
  const fields = html`<label>
    Client
    <select name="client">
      ${known.map(({ client }) => html`<option value="${client.id}">${client.name ?? client.id}</option>`)}
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
  return html`${notice(isGood ? 'good' : 'bad', isGood ? 'The test was accepted.' : html`<strong>The test failed: ${error}.</strong> ${diagnosis?.meaning} ${diagnosis?.remedy}`)}
  ${facts({
    'sent to': notifyUrl,
    status: responseStatus,
    took: shownMs(durationMs),
    address: address,
    answer: responseSnippet && html`<pre>${responseSnippet}</pre>`,
  })}`;
}
