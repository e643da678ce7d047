import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import type { Rate } from '../../../values/duration.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import { hrefOf } from '../../../http/pages/fields.js';
import type { Visit } from '../../../http/pages/site.js';
import {
  type Columns,
  copiedId,
  emptyState,
  facts,
  stateSince,
  statusBadge,
  table,
  time,
} from '../../../http/pages/parts.js';
import { memberLink, orderLink, receiverLink } from '../frame/links.js';
import { failureNotice } from '../overview/failing-clients.js';
import { listHref } from '../notifications/notification-filter.js';
import { notificationTable } from '../notifications/notification-table.js';
import { pausing, testOutcome } from '../receivers/receiver-parts.js';
import type { ClientDetails } from './client-details.js';
import { changes } from './client-forms.js';

/** The page of one client: how it is, and every change that an operator can make. */
export const clientPage = (visit: Visit, details: ClientDetails, test: TestResult | null): Html =>
  html`${test && testOutcome(test)} ${details.failing.map((one) => failureNotice(one))}
    ${summary(details, visit.mayChange)}
    <h2>Notifications</h2>
    ${notifications(details)}
    <h2>Receivers</h2>
    ${table(HOSTS, details.health.hosts, 'How its receivers answer will be here, once something was sent to them.')}
    ${pausing(visit, details.account.deliveriesPaused, html`All notifications of this client wait, at any host.`)}
    <h2>Orders</h2>
    ${table(ORDERS, details.orders, 'Its orders will be here.')}
    <h2>Members</h2>
    ${table(MEMBERS, details.members, 'The members for whom it may act will be here.')}
    <h2>Notify URLs</h2>
    ${table(urls(visit), details.urlChanges, 'Changes of the Notify URL will be here.')}
    <h2>Sign-in failures</h2>
    ${table(FAILURES, details.signInFailures, 'Wrong secrets will be here, counted once a minute.')}
    ${visit.mayChange && changes(visit, details)}`;

function summary({ client, account, isTrusted, pending, limits }: ClientDetails, canChange: boolean): Html {
  const { id, notifyUrl, contact, createdAt, disabledAt } = client;
  const most = limits.pendingWebhookLimit;
  return html`<section class="card">
    ${facts({
      State: stateSince(disabledAt),
      Id: copiedId(id),
      Created: time(createdAt),
      'Notify URL': notifyUrl ?? html`none: only orders with a Notify URL of their own are notified`,
      Contact: contact ?? 'none',
      Grants: account.grants.join(', '),
      'Redirect URIs': account.redirectUris.join(' ') || null,
      Trusted: isTrusted ? 'yes: members are not asked for their consent' : null,
      Secrets:
        account.secrets.length === 0
          ? 'none is valid: it cannot authenticate'
          : html`${account.secrets.map(
              ({ createdAt, expiresAt, signs, hasLeaked }) =>
                html`<div>
                  issued ${time(createdAt)}, makes
                  ${signs}${expiresAt && html` until ${expiresAt}`}${hasLeaked && ', refused for all else'}
                </div>`,
            )}`,
      Pending:
        most === null ? `${pending}` : `${pending} of ${most} notifications; at the limit new orders are refused`,
      'Token requests': rate(limits.tokenRateLimit),
      'New orders': rate(limits.orderRateLimit),
      'Wrong secrets': `${rate(limits.authFailureLimit)} from one address`,
    })}
    <p class="actions">
      ${canChange && html`<a class="button" href="#changes">Change, rotate or disable</a>`}
      <a class="button" href="${hrefOf('/ops/audit', { subject: `client:${id}` })}">Audit of this client</a>
    </p>
  </section>`;
}

const rate = (limit: Rate | null): string => (limit === null ? 'not limited' : `${limit.count} in ${limit.seconds} s`);

function notifications({ client: { id }, webhooks }: ClientDetails): Html {
  if (webhooks.length === 0)
    return emptyState('Its notifications will be here. The first one follows its first completed order.');
  return html`${notificationTable(webhooks)}
    <p class="actions">
      <a class="button" href="${listHref({ client: id })}">All of them</a>
      <a class="button" href="${listHref({ client: id, status: 'UNRESOLVED' })}">Failed, not sent again</a>
    </p>`;
}

const milliseconds = (ms: number | undefined): string | null => (ms === undefined ? null : `${ms} ms`);

const HOSTS: Columns<ClientDetails['health']['hosts'][number]> = {
  Receiver: ({ host }) => receiverLink(host),
  'Failures in a row': { number: ({ failuresInARow }) => failuresInARow },
  'Last success': ({ lastSuccessAt }) => time(lastSuccessAt),
  'Last failure': ({ lastFailureAt }) => time(lastFailureAt),
  Why: ({ lastDiagnosis: why }) => why && `${why.meaning} ${why.remedy}`,
  'Oldest pending': ({ oldestPendingAt }) => time(oldestPendingAt),
  Median: { number: ({ answerTimes }) => milliseconds(answerTimes?.medianMs) },
  p95: { number: ({ answerTimes }) => milliseconds(answerTimes?.p95Ms) },
};

const ORDERS: Columns<ClientDetails['orders'][number]> = {
  Order: ({ key }) => orderLink(key),
  Status: ({ order }) => order.status.toLowerCase(),
  Notification: ({ delivery }) =>
    delivery === null ? html`<span class="dim">none yet</span>` : statusBadge(delivery.status),
  'To pay': { number: ({ order }) => `${(order.payableAmount / 100).toFixed(2)} ${order.currencyCode}` },
  Created: ({ order }) => time(order.createdAt),
};

const MEMBERS: Columns<ClientDetails['members'][number]> = {
  Member: ({ ownerId, name }) => (name === undefined ? ownerId : memberLink({ id: ownerId, name })),
  Since: ({ givenAt }) => time(givenAt),
};

const urls = ({ path, mayChange }: Visit): Columns<AuditEvent> => ({
  When: ({ createdAt }) => time(createdAt),
  Who: ({ actor }) => actor,
  From: ({ detail: { from } }) => String(from ?? ''),
  To: ({ detail: { to, host } }) => String(to ?? host),
  ...(mayChange && {
    Back: ({ detail: { from } }) =>
      from
        ? html`<a href="${hrefOf(path, { notifyUrl: String(from) })}#notify-url">Back to the previous one</a>`
        : null,
  }),
});

const FAILURES: Columns<AuditEvent> = {
  When: ({ createdAt }) => time(createdAt),
  From: ({ address }) => address ?? 'several addresses',
  Wrong: { number: ({ detail }) => String(detail.failed ?? 0) },
  'Refused by the limit': { number: ({ detail }) => String(detail.blocked ?? 0) },
};

/** How long the old secret is used, by the form that replaces it: after a leak it only signs. */
