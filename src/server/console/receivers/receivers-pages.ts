import { AuditLog } from '../../../audit/audit.module.js';
import { html } from '../../../http/html.js';
import { searchField } from '../../../http/pages/fields.js';
import { listPage } from '../../../http/pages/list.js';
import { notFound, unavailable, unprocessable } from '../../../http/problem.js';
import { TestNotifications } from '../../../webhooks/api/test-notifications.js';
import { HOST_LENGTH } from '../../../values/urls/notify-url.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import type { Figures, HostFigures } from '../../../webhooks/figures/delivery-figures.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { charts } from '../figures/charts.js';
import {
  ATTEMPTS,
  figuresOfPoints,
  type Compared,
  quantileColumns,
  rangeLinks,
  rangeOf,
  shownMs,
  withChange,
} from '../figures/figures.js';
import { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import { pauseActions, pausing, testOutcome } from './receiver-parts.js';
import { definePage, pagesWith, type Visit } from '../../../http/pages/site.js';
import { cellsOf, type Columns, emptyState, statusBadge, table, tiles } from '../../../http/pages/parts.js';
import { clientLink, receiverLink, webhookLink } from '../frame/links.js';
import { failureNotice, reasonOf } from '../overview/problems.js';
import { type HostDetails, MAX_HOSTS, MAX_NOTIFICATIONS, ReceiversData } from './receivers-data.js';

const PATH = '/ops/receivers';
const SHOWN_HERE = 'Each host that notifications are sent to is shown here.';

export const receiversPages = pagesWith(
  [ReceiversData, TestNotifications, AuditLog, DeliveryPauses],
  (data, tests, audit, pauses) => [
    listPage({
      path: PATH,
      title: 'Receivers',
      noun: 'receiver',
      fields: { q: searchField('Host'), range: { label: null, read: (range) => range, fault: '' } },
      above: (_, { given }) => rangeLinks(PATH, rangeOf(given), given),
      hint: () =>
        html`<p class="dim">
          The hosts of Notify URLs, at most ${MAX_HOSTS} with the most failed attempts. p50 and p95 are of the durations
          of attempts. The last hour is counted from the beginning of the hour before.
        </p>`,
      read: async ({ given }) => {
        const hosts = await data.lists.get(rangeOf(given));
        if (!hosts) throw unavailable('the database does not answer');
        return { rows: hosts.filter(({ host }) => host.includes(given.q.toLowerCase())), next: null };
      },
      columns: {
        Receiver: { value: 'host', cell: ({ host }) => receiverLink(host) },
        Clients: { number: 'clients' },
        ...FIGURES,
        Why: { value: ({ failing }) => failing && reasonOf(failing) },
      },
      nothing: [`No attempts in this range. ${SHOWN_HERE}`, 'No such attempts in this range.'],
      isLive: true,
    }),
    definePage({
      path: `${PATH}/:host`,
      read: (visit) => data.of(hostOf(visit), rangeOf(visit.query)),
      show: (visit, details) => ({
        title: `Receiver ${details.host}`,
        body: hostPage(visit, details),
      }),
      actions: {
        ...pauseActions('host', pauses),
        test: {
          button: 'Send a test',
          fields: ({ clients }) => {
            const options = Object.fromEntries(known(clients).map(({ id, name }) => [id, name ?? id]));
            return [{ name: 'client', label: 'Client', options, hint: TEST_HINT }];
          },
          // The result is not stored, so the answer itself shows it.
          answer: async ({ client = '' }, visit) => {
            const host = hostOf(visit);
            const url = (await data.at(host, [client])).urls.get(client);
            if (!url) throw unprocessable('The client has no Notify URL at this host; choose another one');
            const result = await tests.sendTo({ id: client }, url);
            await audit.record({
              action: 'webhook.tested',
              subject: `client:${client}`,
              actor: visit.actor,
              detail: { host, outcome: result.outcome },
            });
            return visit.show(testOutcome(result));
          },
        },
      },
    }),
  ],
);

function hostPage(visit: Visit, { range, points, before, clients, answers, concerned, paused }: HostDetails) {
  const figures = html`${totals(figuresOfPoints(points), before)}
    ${charts(points, 'Time of an attempt', ({ duration }) => duration)}
    <h2>Clients</h2>
    ${table({ Client: ({ client }) => clientLink(client), 'Notify URL': 'notifyUrl', ...FIGURES }, clients)}`;
  const links = concerned.map((client) => html`${clientLink(client)} `);
  const whose = links.length > 0 ? html`A pause concerns: ${links}` : html`No client sends to this host at present.`;
  return html`${clients.map(({ client, failing }) => failing && failureNotice(failing, client))}
  ${rangeLinks(visit.path, range)}
  ${clients.length === 0 ? emptyState(`No attempts in the ${range.name.toLowerCase()}. ${SHOWN_HERE}`) : figures}
  ${
    visit.mayChange &&
    known(clients).length > 0 &&
    html`<h2>Send a test</h2>
      ${visit.form('test')}`
  }
  ${answerTables(answers)} ${pausing(visit, paused, whose)}`;
}

const totals = (figures: Figures, before?: Figures) =>
  tiles({
    ...cellsOf(TOTALS, { figures, before }),
    Failed: [figures.failures, figures.failures > 0 ? 'bad' : null],
  });

const TOTALS: Columns<Compared<Figures>> = {
  ...ATTEMPTS,
  ...quantileColumns('Attempt, ', ({ duration }) => duration),
  'Attempt, average': ({ figures, before }) =>
    withChange(figures, before, ({ averageMs }) => (averageMs === null ? '–' : shownMs(averageMs))),
  ...quantileColumns('Time to receipt, ', ({ receipt }) => receipt),
};

const FIGURES: Columns<Compared<HostFigures['figures']> & { failing: FailingHost | null }> = {
  ...ATTEMPTS,
  ...quantileColumns('', ({ duration }) => duration),
  'Failing since': { time: ({ failing }) => failing && failing.failingSince },
};

const answerBadge = ({ responseStatus, error }: WebhookAttempt) =>
  statusBadge(responseStatus === null ? 'no answer' : String(responseStatus), error === null ? 'good' : 'bad');

function answerTables({ urls, last }: HostDetails['answers']) {
  if (last.length === 0) return emptyState('No answer among the newest notifications of these clients.');
  return html`<h2>Notify URLs</h2>
    <p class="hint">The attempts of the newest notifications, at most ${MAX_NOTIFICATIONS} of them.</p>
    ${table(
      {
        'Notify URL': 'notifyUrl',
        Attempts: { number: 'attempts' },
        Failed: { number: 'failures' },
        Median: { number: ({ medianMs }) => shownMs(medianMs) },
        'Last answer': ({ last }) => last && answerBadge(last),
        Time: { time: ({ last }) => last && last.startedAt },
      },
      urls,
    )}
    <h2>Last answers</h2>
    ${table(
      {
        Time: { time: ({ attempt }) => attempt.startedAt },
        Client: ({ client }) => clientLink(client),
        Notification: ({ id }) => webhookLink(id),
        Attempt: { number: ({ attempt }) => attempt.number },
        Answer: ({ attempt }) => answerBadge(attempt),
        Took: { number: ({ attempt: { durationMs } }) => shownMs(durationMs ?? 0) },
        Meaning: ({ attempt: { diagnosis, error } }) =>
          diagnosis === null ? (error ?? 'Delivered.') : DIAGNOSES[diagnosis].meaning,
      },
      last,
    )}`;
}

const known = (clients: HostDetails['clients']) =>
  clients.filter(({ notifyUrl }) => notifyUrl !== null).map(({ client }) => client);

const TEST_HINT =
  'A signed sample goes to the Notify URL of this client. Its header X-Webhook-Test: true marks it; it is not stored and not repeated.';

/** No host of a URL contains a space or a control character, and Postgres refuses NUL. */
function hostOf({ id: host }: Visit) {
  if (host.length > HOST_LENGTH || /[\s\p{Cc}]/u.test(host)) throw notFound('there is no such receiver');
  return host;
}
