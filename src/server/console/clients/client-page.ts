import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import type { Rate } from '../../../values/duration.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import { hrefOf } from '../fields/fields.js';
import type { Visit } from '../frame/pages.js';
import {
  type Column,
  copiedId,
  emptyState,
  facts,
  notice,
  orderLink,
  receiverLink,
  stateSince,
  statusBadge,
  table,
  time,
} from '../frame/parts.js';
import { listHref } from '../notifications/notification-filter.js';
import { notificationTable } from '../notifications/notification-table.js';
import type { ClientDetails } from './client-details.js';
import { changes } from './client-forms.js';

/** The page of one client: how it is, and every change that an operator can make. */
export const clientPage = (visit: Visit, details: ClientDetails, test: TestResult | null): Html =>
  html`${test && testNotice(test)} ${failing(details)} ${summary(details, visit.mayChange)}
    <h2>Notifications</h2>
    ${notifications(details)}
    <h2>Receivers</h2>
    ${table(HOSTS, details.health.hosts, 'How its receivers answer will be here, once something was sent to them.')}
    <h2>Orders</h2>
    ${table(ORDERS, details.orders, 'Its orders will be here.')}
    <h2>Sign-in failures</h2>
    ${table(FAILURES, details.signInFailures, 'Wrong secrets will be here, counted once a minute.')}
    ${visit.mayChange ? changes(visit, details) : null}`;

function testNotice({ outcome, notifyUrl, responseStatus, durationMs, error, diagnosis }: TestResult): Html {
  const what = html`Test notification to ${notifyUrl}:
  ${outcome}${responseStatus === null ? null : `, status ${responseStatus}`} after ${durationMs} ms.`;
  return outcome === 'delivered'
    ? notice('good', what)
    : notice('bad', html`${what} ${error} ${diagnosis?.meaning ?? null} <strong>${diagnosis?.remedy ?? null}</strong>`);
}

const failing = ({ failing: hosts }: ClientDetails): Html[] =>
  hosts.map(({ host, failingSince, lastError }) =>
    notice('bad', html`${receiverLink(host)} has failed since ${time(failingSince)}: ${lastError}.`),
  );

function summary({ client, account, isTrusted, pending, limits }: ClientDetails, canChange: boolean): Html {
  const { id, notifyUrl, contact, createdAt, disabledAt } = client;
  const most = limits.pendingWebhookLimit;
  return html`<section class="card">
    ${facts([
      ['State', stateSince(disabledAt)],
      ['Id', copiedId(id)],
      ['Created', time(createdAt)],
      ['Notify URL', notifyUrl ?? html`none: only orders with a Notify URL of their own are notified`],
      ['Contact', contact ?? 'none'],
      ['Grants', account.grants.join(', ')],
      ['Redirect URIs', account.redirectUris.length === 0 ? null : account.redirectUris.join(' ')],
      ['Trusted', isTrusted ? 'yes: members are not asked for their consent' : null],
      ['Secrets', account.secrets.length === 0 ? 'none is valid: it cannot authenticate' : secrets(account)],
      [
        'Pending',
        most === null ? `${pending}` : `${pending} of ${most} notifications; at the limit new orders are refused`,
      ],
      ['Token requests', rate(limits.tokenRateLimit)],
      ['New orders', rate(limits.orderRateLimit)],
      ['Wrong secrets', `${rate(limits.authFailureLimit)} from one address`],
    ])}
    <p class="actions">
      ${canChange ? html`<a class="button" href="#changes">Change, rotate or disable</a>` : null}
      <a class="button" href="${hrefOf('/ops/audit', { subject: `client:${id}` })}">Audit of this client</a>
    </p>
  </section>`;
}

const secrets = ({ secrets }: ClientDetails['account']): Html =>
  html`${secrets.map(
    ({ createdAt, expiresAt, signs }) =>
      html`<div>
        issued ${time(Date.parse(createdAt))}, makes
        ${signs}${expiresAt === null ? null : html`, ends ${time(Date.parse(expiresAt))}`}
      </div>`,
  )}`;

const rate = (limit: Rate | null): string => (limit === null ? 'not limited' : `${limit.count} in ${limit.seconds} s`);

function notifications({ client: { id }, notifications }: ClientDetails): Html {
  if (notifications.length === 0)
    return emptyState('Its notifications will be here. The first one follows its first completed order.');
  return html`${notificationTable(notifications)}
    <p class="actions">
      <a class="button" href="${listHref({ client: id })}">All of them</a>
      <a class="button" href="${listHref({ client: id, status: 'UNRESOLVED' })}">Failed, not sent again</a>
    </p>`;
}

const moment = (text: string | null): Html => time(text === null ? null : Date.parse(text));
const milliseconds = (ms: number | undefined): string | null => (ms === undefined ? null : `${ms} ms`);

type Host = ClientDetails['health']['hosts'][number];

const HOSTS: Column<Host>[] = [
  { name: 'Receiver', cell: ({ host }) => receiverLink(host) },
  { name: 'Failures in a row', isNumber: true, cell: ({ failuresInARow }) => failuresInARow },
  { name: 'Last success', cell: ({ lastSuccessAt }) => moment(lastSuccessAt) },
  { name: 'Last failure', cell: ({ lastFailureAt }) => moment(lastFailureAt) },
  { name: 'Why', cell: ({ lastDiagnosis: why }) => why && `${why.meaning} ${why.remedy}` },
  { name: 'Oldest pending', cell: ({ oldestPendingAt }) => moment(oldestPendingAt) },
  { name: 'Median', isNumber: true, cell: ({ answerTimes }) => milliseconds(answerTimes?.medianMs) },
  { name: 'p95', isNumber: true, cell: ({ answerTimes }) => milliseconds(answerTimes?.p95Ms) },
];

const ORDERS: Column<ClientDetails['orders'][number]>[] = [
  { name: 'Order', cell: ({ key }) => orderLink(key) },
  { name: 'Status', cell: ({ order }) => order.status.toLowerCase() },
  {
    name: 'Notification',
    cell: ({ delivery }) =>
      delivery === null ? html`<span class="dim">none yet</span>` : statusBadge(delivery.status),
  },
  { name: 'To pay', isNumber: true, cell: ({ order }) => `${order.payableAmount} ${order.currencyCode}` },
  { name: 'Created', cell: ({ order }) => time(order.createdAt) },
];

const FAILURES: Column<AuditEvent>[] = [
  { name: 'When', cell: ({ createdAt }) => time(createdAt) },
  { name: 'From', cell: ({ address }) => address ?? 'several addresses' },
  { name: 'Wrong', isNumber: true, cell: ({ detail }) => String(detail.failed ?? 0) },
  { name: 'Refused by the limit', isNumber: true, cell: ({ detail }) => String(detail.blocked ?? 0) },
];
