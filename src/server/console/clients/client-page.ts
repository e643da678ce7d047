import { type Html, html } from '../../../http/html.js';
import type { Rate } from '../../../values/duration.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import {
  copyButton,
  emptyState,
  facts,
  notice,
  orderLink,
  receiverLink,
  statusBadge,
  table,
  time,
} from '../frame/parts.js';
import { hrefOf } from '../fields/fields.js';
import { faultText } from '../fields/refusal.js';
import { mayChange } from '../frame/frame.js';
import { listHref } from '../notifications/notification-filter.js';
import { notificationTable } from '../notifications/notification-table.js';
import type { ClientDetails } from './client-details.js';
import {
  applicationForm,
  contactForm,
  dangerForms,
  type Forms,
  nameForm,
  notifyUrlForm,
  secretForms,
} from './client-forms.js';

export interface ClientPage extends Forms {
  /** What was done just now. */
  done: string | null;
  test: TestResult | null;
}

/** The page of one client: how it is, and every change that an operator can make. */
export function clientPage(page: ClientPage): Html {
  const { details, refusal, done, test, request } = page;
  return html`${done === null ? null : notice('good', done)}
    ${refusal === null ? null : notice('bad', `Nothing was changed. ${faultText(refusal.problem)}`)}
    ${test && testNotice(test)} ${failing(details)} ${summary(details, mayChange(request))}
    <h2>Notifications</h2>
    ${notifications(details)}
    <h2>Receivers</h2>
    ${receivers(details)}
    <h2>Orders</h2>
    ${orders(details)}
    <h2>Sign-in failures</h2>
    ${signInFailures(details)} ${mayChange(request) ? changes(page) : null}`;
}

const changes = (page: ClientPage): Html =>
  html`<h2 id="changes">Changes</h2>
    <div class="columns">
      <section class="card" id="notify-url">
        <h3>Notify URL</h3>
        ${notifyUrlForm(page)}
      </section>
      <section class="card">
        <h3>Name and contact</h3>
        ${nameForm(page)} ${contactForm(page)}
      </section>
      <section class="card">
        <h3>Grants and redirect URIs</h3>
        ${applicationForm(page)}
      </section>
      <section class="card">
        <h3>Secret</h3>
        ${secretForms(page)}
      </section>
      <section class="card">
        <h3>Access</h3>
        ${dangerForms(page)}
      </section>
    </div>`;

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
      [
        'State',
        disabledAt === null ? statusBadge('active') : html`${statusBadge('disabled')} since ${time(disabledAt)}`,
      ],
      ['Id', html`<span class="id">${id} ${copyButton(id)}</span>`],
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

function receivers({ health: { hosts } }: ClientDetails): Html {
  if (hosts.length === 0) return emptyState('How its receivers answer will be here, once something was sent to them.');
  const moment = (text: string | null): Html => time(text === null ? null : Date.parse(text));
  const columns = [
    { name: 'Receiver' },
    { name: 'Failures in a row', isNumber: true },
    { name: 'Last success' },
    { name: 'Last failure' },
    { name: 'Why' },
    { name: 'Oldest pending' },
    { name: 'Median', isNumber: true },
    { name: 'p95', isNumber: true },
  ];
  const rows = hosts.map(
    ({ host, failuresInARow, lastSuccessAt, lastFailureAt, lastDiagnosis, oldestPendingAt, answerTimes }) => [
      receiverLink(host),
      html`${failuresInARow}`,
      moment(lastSuccessAt),
      moment(lastFailureAt),
      html`${lastDiagnosis?.meaning ?? null} ${lastDiagnosis?.remedy ?? null}`,
      moment(oldestPendingAt),
      html`${answerTimes === null ? '–' : `${answerTimes.medianMs} ms`}`,
      html`${answerTimes === null ? '–' : `${answerTimes.p95Ms} ms`}`,
    ],
  );
  return table(columns, rows);
}

function orders({ orders: found }: ClientDetails): Html {
  if (found.length === 0) return emptyState('Its orders will be here.');
  const columns = [
    { name: 'Order' },
    { name: 'Status' },
    { name: 'Notification' },
    { name: 'To pay', isNumber: true },
    { name: 'Created' },
  ];
  const rows = found.map(({ order, key, delivery }) => [
    orderLink(key),
    html`${order.status.toLowerCase()}`,
    delivery === null ? html`<span class="dim">none yet</span>` : statusBadge(delivery.status),
    html`${order.payableAmount} ${order.currencyCode}`,
    time(order.createdAt),
  ]);
  return table(columns, rows);
}

function signInFailures({ signInFailures: events }: ClientDetails): Html {
  if (events.length === 0) return emptyState('Wrong secrets will be here, counted once a minute.');
  const columns = [
    { name: 'When' },
    { name: 'From' },
    { name: 'Wrong', isNumber: true },
    { name: 'Refused by the limit', isNumber: true },
  ];
  const rows = events.map(({ createdAt, address, detail }) => [
    time(createdAt),
    html`${address ?? 'several addresses'}`,
    html`${String(detail.failed ?? 0)}`,
    html`${String(detail.blocked ?? 0)}`,
  ]);
  return table(columns, rows);
}
