import { Injectable } from '@nestjs/common';
import { AuditLog } from '../../../audit/audit.module.js';
import { type Html, html } from '../../../http/html.js';
import { notFound, unprocessable } from '../../../http/problem.js';
import { type TestResult, TestNotifications } from '../../../webhooks/api/test-notifications.js';
import { HOST_LENGTH } from '../../../webhooks/contact/failing-host.entity.js';
import type { Figures } from '../../../webhooks/figures/delivery-figures.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { attemptsChart, timesChart } from '../figures/charts.js';
import {
  ATTEMPTS,
  figuresOfPoints,
  figuresTable,
  quantileColumns,
  type Range,
  rangeLinks,
  rangeOf,
  ratio,
  shownMs,
  shownQuantile,
  withChange,
} from '../figures/figures.js';
import { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import { pauseActions, pausing, testOutcome } from './receiver-parts.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { type Columns, emptyState, notice, statusBadge, table, tiles, time } from '../../../http/pages/parts.js';
import { clientLink, receiverLink, webhookLink } from '../frame/links.js';
import { failureNotice, reasonOf } from '../overview/failing-clients.js';
import {
  type HostClient,
  type ListedHost,
  MAX_HOSTS,
  MAX_NOTIFICATIONS,
  type Receiver,
  ReceiversData,
  type UrlAnswers,
} from './receivers-data.js';

const PATH = '/ops/receivers';

/** The hosts that notifications are sent to. */
@Injectable()
export class ReceiversPages {
  constructor(
    private readonly data: ReceiversData,
    private readonly tests: TestNotifications,
    private readonly audit: AuditLog,
    private readonly pauses: DeliveryPauses,
  ) {}

  readonly pages: Page[] = [
    { path: PATH, show: (visit) => this.list(visit) },
    {
      path: `${PATH}/:host`,
      show: (visit) => this.show(visit),
      actions: {
        ...pauseActions('host', () => this.pauses),
        test: { button: 'Send a test', answer: ({ client = '' }, visit) => this.test(client, visit) },
      },
    },
  ];

  private async list({ query }: Visit): Promise<View> {
    const range = rangeOf(query);
    const hosts = await this.data.list(range);
    const body = hosts === null ? notice('bad', 'The database does not answer.') : receivers(hosts, range);
    return { title: 'Receivers', section: 'receivers', body, isLive: true };
  }

  private async show(visit: Visit, test: TestResult | null = null): Promise<View> {
    const host = hostOf(visit);
    const range = rangeOf(visit.query);
    const clients = await this.pauses.clientsAt(host);
    const whose = html`It concerns: ${clients.map((client) => html`${clientLink(client)} `)}`;
    const body = html`${receiver(visit, range, await this.data.of(host, range), test)}
    ${pausing(visit, await this.pauses.find(`host:${host}`), whose)}`;
    return { title: `Receiver ${host}`, section: 'receivers', body };
  }

  /** Its result is not stored, so the answer itself shows it. */
  private async test(client: string, visit: Visit): Promise<View> {
    const host = hostOf(visit);
    const url = await this.data.notifyUrlAt(host, client);
    if (url === null) throw unprocessable('The client has no Notify URL at this host; choose another one');
    const result = await this.tests.sendTo({ id: client }, url);
    const detail = { host, outcome: result.outcome };
    await this.audit.record({ action: 'webhook.tested', subject: `client:${client}`, actor: visit.actor, detail });
    return this.show(visit, result);
  }
}

/** `test`: the result of a test that was sent just now. */
function receiver(
  visit: Visit,
  range: Range,
  { points, before, clients, answers }: Receiver,
  test: TestResult | null,
): Html {
  const figures = html`${totals(figuresOfPoints(points), before)}
    <div class="columns">
      <div class="card">${attemptsChart(points)}</div>
      <div class="card">${timesChart('Time of an attempt', points, ({ duration }) => duration)}</div>
    </div>
    ${figuresTable(points)}
    <h2>Clients</h2>
    ${table(CLIENT_COLUMNS, clients)}`;
  const attempts = html`<h2>Notify URLs</h2>
    <p class="hint">The attempts of the newest notifications, at most ${MAX_NOTIFICATIONS} of them.</p>
    ${table(URL_COLUMNS, answers.urls)}
    <h2>Last answers</h2>
    ${table(ANSWER_COLUMNS, answers.last)}`;
  return html`${test && testOutcome(test)} ${clients.map(failingNotice)} ${rangeLinks(visit.path, range)}
  ${clients.length === 0 ? emptyState(noAttempts(range)) : figures} ${testForm(visit, clients)}
  ${answers.last.length === 0 ? emptyState('No answer among the newest notifications of these clients.') : attempts}`;
}

const noAttempts = ({ name }: Range): string =>
  `No attempts in the ${name.toLowerCase()}. Each host that notifications are sent to is shown here.`;

const failingNotice = ({ client, failing }: HostClient): Html | null => failing && failureNotice(failing, client);

function totals(now: Figures, before: Figures): Html {
  const { attempts, failures } = now;
  const shown = (show: (figures: Figures) => string): Html => withChange(now, before, show);
  return tiles({
    Attempts: attempts,
    Failed: [failures, failures > 0 ? 'bad' : null],
    Succeeded: shown(({ successRate }) => ratio(successRate)),
    'Attempt, p50': shown(({ duration }) => shownQuantile(duration.p50)),
    'Attempt, p95': shown(({ duration }) => shownQuantile(duration.p95)),
    'Attempt, average': shown(({ averageMs }) => (averageMs === null ? '–' : shownMs(averageMs))),
    'Time to receipt, p50': shown(({ receipt }) => shownQuantile(receipt.p50)),
    'Time to receipt, p95': shown(({ receipt }) => shownQuantile(receipt.p95)),
  });
}

/** The figures of a host or of a client at it. */
const FIGURES: Columns<Pick<ListedHost, 'figures' | 'failing'> & Partial<Pick<ListedHost, 'before'>>> = {
  ...ATTEMPTS,
  ...quantileColumns('', ({ duration }) => duration),
  'Failing since': ({ failing }) => time(failing && failing.failingSince),
};

const CLIENT_COLUMNS: Columns<HostClient> = {
  Client: ({ client }) => clientLink(client),
  'Notify URL': ({ notifyUrl }) => notifyUrl,
  ...FIGURES,
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

/** No host of a URL contains a space or a control character, and Postgres refuses NUL. */
function hostOf({ id: host }: Visit): string {
  if (host.length > HOST_LENGTH || /[\s\p{Cc}]/u.test(host)) throw notFound('there is no such receiver');
  return host;
}

const receivers = (hosts: ListedHost[], range: Range): Html =>
  html`${rangeLinks(PATH, range)}
    <p class="dim">
      The hosts of Notify URLs, those with the most failed attempts first. p50 and p95 are of the time of an attempt.
    </p>
    ${table(COLUMNS, hosts, noAttempts(range))}
    ${hosts.length === MAX_HOSTS && html`<p class="dim">Only ${MAX_HOSTS} receivers are shown.</p>`}`;

const COLUMNS: Columns<ListedHost> = {
  Receiver: ({ host }) => receiverLink(host),
  Clients: { number: ({ clients }) => clients },
  ...FIGURES,
  Why: ({ failing }) => failing && reasonOf(failing),
};
