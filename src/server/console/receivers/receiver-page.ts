import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import type { WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import { figuresTable } from '../figures/figures-table.js';
import { ratio, shownMs, shownQuantile } from '../figures/numbers.js';
import { figuresOfPoints, type Range } from '../figures/periods.js';
import { postForm } from '../frame/form.js';
import { clientLink, emptyState, facts, notice, statusBadge, table, tiles, time, webhookLink } from '../frame/parts.js';
import { type Answer, MAX_NOTIFICATIONS, type UrlAnswers } from './answers.js';
import type { HostClient, Receiver } from './receivers-data.js';
import { noAttempts, rangeLinks, reasonOf } from './receivers-page.js';

export interface ReceiverPage {
  host: string;
  range: Range;
  receiver: Receiver;
  /** The result of a test, or why it was not sent. */
  test: { result: TestResult } | { refusal: string } | null;
}

export const pathOf = (host: string): string => `/ops/receivers/${encodeURIComponent(host)}`;

export function receiverPage(request: FastifyRequest, { host, range, receiver, test }: ReceiverPage): Html {
  const { points, clients, answers } = receiver;
  return html`${test && testOutcome(test)} ${clients.map(failingNotice)} ${rangeLinks(pathOf(host), range)}
  ${
    clients.length === 0
      ? noAttempts(range)
      : html`${totals(receiver)}
          <div class="columns">
            <div class="card">${attemptsChart(points, range.periodMs)}</div>
            <div class="card">
              ${timesChart('Time of an attempt', points, range.periodMs, ({ duration }) => duration)}
            </div>
          </div>
          ${figuresTable(points, range.periodMs)}
          <h2>Clients</h2>
          ${table(CLIENT_COLUMNS, clients.map(clientRow))}`
  }
  ${testForm(request, host, clients)}
  ${
    answers.last.length === 0
      ? emptyState('No answer among the newest notifications of these clients.')
      : html`<h2>Notify URLs</h2>
          <p class="hint">The attempts of the newest notifications, at most ${MAX_NOTIFICATIONS} of them.</p>
          ${table(URL_COLUMNS, answers.urls.map(urlRow))}
          <h2>Last answers</h2>
          ${table(ANSWER_COLUMNS, answers.last.map(answerRow))}`
  }`;
}

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

const CLIENT_COLUMNS = ['Client', 'Notify URL', 'Attempts', 'Failed', 'Succeeded', 'p50', 'p95', 'Failing since'].map(
  (name, index) => ({ name, isNumber: index > 1 && index < 7 }),
);

function clientRow({ client, notifyUrl, figures, failing }: HostClient): Html[] {
  const { attempts, failures, successRate, duration } = figures;
  return [
    clientLink(client),
    html`${notifyUrl ?? '–'}`,
    html`${attempts}`,
    html`${failures}`,
    html`${ratio(successRate)}`,
    html`${shownQuantile(duration.p50)}`,
    html`${shownQuantile(duration.p95)}`,
    time(failing?.failingSince ?? null),
  ];
}

const URL_COLUMNS = [
  { name: 'Notify URL' },
  { name: 'Attempts', isNumber: true },
  { name: 'Failed', isNumber: true },
  { name: 'Median', isNumber: true },
  { name: 'Last answer' },
  { name: 'Time' },
];

const urlRow = ({ notifyUrl, attempts, failures, medianMs, last }: UrlAnswers): Html[] => [
  html`${notifyUrl}`,
  html`${attempts}`,
  html`${failures}`,
  html`${shownMs(medianMs)}`,
  answerBadge(last),
  time(last.startedAt),
];

const answerBadge = ({ responseStatus, error }: WebhookAttempt): Html =>
  statusBadge(responseStatus === null ? 'no answer' : String(responseStatus), error === null ? 'good' : 'bad');

const ANSWER_COLUMNS = [
  { name: 'Time' },
  { name: 'Client' },
  { name: 'Notification' },
  { name: 'Attempt', isNumber: true },
  { name: 'Answer' },
  { name: 'Took', isNumber: true },
  { name: 'Meaning' },
];

function answerRow({ client, attempt }: Answer): Html[] {
  const { webhookId, number, startedAt, durationMs, error, diagnosis } = attempt;
  return [
    time(startedAt),
    clientLink(client),
    webhookLink(webhookId),
    html`${number}`,
    answerBadge(attempt),
    html`${durationMs === null ? '–' : shownMs(durationMs)}`,
    html`${diagnosis === null ? (error ?? 'Delivered.') : DIAGNOSES[diagnosis].meaning}`,
  ];
}

/** Only for clients whose Notify URL here is known. */
function testForm(request: FastifyRequest, host: string, clients: HostClient[]): Html | null {
  const known = clients.filter(({ notifyUrl }) => notifyUrl !== null);
  if (known.length === 0) return null;
  const form = postForm(request, {
    action: `${pathOf(host)}/test`,
    body: html`<label>
      Client
      <select name="client">
        ${known.map(({ client }) => html`<option value="${client.id}">${client.name === '' ? client.id : client.name}</option>`)}
      </select>
      <span class="hint">
        A signed sample goes to the Notify URL of this client. Its header <code>X-Webhook-Test: true</code> marks it; it
        is not stored and not repeated.
      </span>
    </label>`,
    button: 'Send a test',
  });
  return (
    form &&
    html`<h2>Send a test</h2>
      ${form}`
  );
}

function testOutcome(test: { result: TestResult } | { refusal: string }): Html {
  if ('refusal' in test) return notice('bad', test.refusal);
  const { notifyUrl, outcome, responseStatus, durationMs, error, diagnosis, responseSnippet, address } = test.result;
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
