import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import { GRANT_TYPES, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import type { Rate } from '../../../values/duration.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import { checkField, type FormPart, hrefOf, inputField } from '../../../http/pages/fields.js';
import type { Visit } from '../../../http/pages/site.js';
import {
  type Columns,
  copiedId,
  emptyState,
  facts,
  notice,
  stateSince,
  statusBadge,
  table,
  time,
} from '../../../http/pages/parts.js';
import { orderLink, receiverLink } from '../frame/links.js';
import { failureNotice } from '../overview/failing-clients.js';
import { listHref } from '../notifications/notification-filter.js';
import { notificationTable } from '../notifications/notification-table.js';
import type { ClientDetails } from './client-details.js';

/** The page of one client: how it is, and every change that an operator can make. */
export const clientPage = (visit: Visit, details: ClientDetails, test: TestResult | null): Html =>
  html`${test && testNotice(test)} ${details.failing.map((one) => failureNotice(one))}
    ${summary(details, visit.mayChange)}
    <h2>Notifications</h2>
    ${notifications(details)}
    <h2>Receivers</h2>
    ${table(HOSTS, details.health.hosts, 'How its receivers answer will be here, once something was sent to them.')}
    <h2>Orders</h2>
    ${table(ORDERS, details.orders, 'Its orders will be here.')}
    <h2>Sign-in failures</h2>
    ${table(FAILURES, details.signInFailures, 'Wrong secrets will be here, counted once a minute.')}
    ${visit.mayChange && changes(visit, details)}`;

function testNotice({ outcome, notifyUrl, responseStatus, durationMs, error, diagnosis }: TestResult): Html {
  const what = html`Test notification to ${notifyUrl}: ${outcome}${responseStatus && `, status ${responseStatus}`} after
  ${durationMs} ms.`;
  return outcome === 'delivered'
    ? notice('good', what)
    : notice('bad', html`${what} ${error} ${diagnosis?.meaning} <strong>${diagnosis?.remedy}</strong>`);
}

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
      Secrets: account.secrets.length === 0 ? 'none is valid: it cannot authenticate' : secrets(account),
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

const secrets = ({ secrets }: ClientDetails['account']): Html =>
  html`${secrets.map(
    ({ createdAt, expiresAt, signs }) =>
      html`<div>issued ${time(createdAt)}, makes ${signs}${expiresAt && html`, ends ${time(expiresAt)}`}</div>`,
  )}`;

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
  'To pay': { number: ({ order }) => `${order.payableAmount} ${order.currencyCode}` },
  Created: ({ order }) => time(order.createdAt),
};

const FAILURES: Columns<AuditEvent> = {
  When: ({ createdAt }) => time(createdAt),
  From: ({ address }) => address ?? 'several addresses',
  Wrong: { number: ({ detail }) => String(detail.failed ?? 0) },
  'Refused by the limit': { number: ({ detail }) => String(detail.blocked ?? 0) },
};

export const OVERLAPS = {
  '24h': '24 hours',
  '7d': '7 days',
  '1h': '1 hour',
  '0s': 'none: the old secret ends at once',
};

/** The forms of a client's page, below its facts. */
const changes = (visit: Visit, details: ClientDetails): Html =>
  html`<h2 id="changes">Changes</h2>
    <div class="columns">
      <section class="card" id="notify-url">
        <h3>Notify URL</h3>
        ${notifyUrlForms(visit, details)}
      </section>
      <section class="card">
        <h3>Name and contact</h3>
        ${visit.form('rename', [{ ...CLIENT_FIELDS.name, value: details.client.name }])} ${contactForm(visit, details)}
      </section>
      <section class="card">
        <h3>Grants and redirect URIs</h3>
        ${applicationForm(visit, details)}
      </section>
      <section class="card">
        <h3>Secret</h3>
        ${details.account.secrets.length > 1 ? visit.form('finish-rotation') : rotateForm(visit)}
      </section>
      <section class="card">
        <h3>Access</h3>
        ${visit.form('revoke-tokens')} ${details.client.disabledAt === null ? disableForm(visit) : visit.form('enable')}
      </section>
    </div>`;

/** The fields about a client, without their values. */
export const CLIENT_FIELDS = {
  name: { name: 'name', label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true },
  notifyUrl: { name: 'notifyUrl', label: 'Notify URL', type: 'url', maxLength: NOTIFY_URL_MAX_LENGTH },
  contact: { name: 'contact', label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH },
} as const;

function notifyUrlForms(visit: Visit, { client: { notifyUrl } }: ClientDetails): Html {
  const form = visit.form('notify-url', [
    { ...CLIENT_FIELDS.notifyUrl, value: notifyUrl ?? '', isRequired: true },
    checkField('isTested', 'Send a signed sample there first, and change nothing unless it is answered 2xx', true),
  ]);
  return html`${form} ${notifyUrl && visit.form('test')}`;
}

function contactForm(visit: Visit, { client }: ClientDetails): Html | null {
  const hint = 'Is told by e-mail when a Notify URL fails. Empty: nobody is told.';
  return visit.form('contact', [{ ...CLIENT_FIELDS.contact, value: client.contact ?? '', hint }]);
}

function applicationForm(visit: Visit, { account, isTrusted }: ClientDetails): Html | null {
  const given = visit.givenIn('application');
  const { redirectUris, grants: grantTypes } = account;
  return visit.form(
    'application',
    applicationParts(given ? applicationFields(given) : { redirectUris, grantTypes, isTrusted }),
  );
}

/** Also a part of the form for a new client. */
export const applicationParts = ({
  redirectUris,
  grantTypes,
  isTrusted,
}: {
  redirectUris: string[];
  grantTypes: readonly string[];
  isTrusted: boolean;
}): FormPart[] => [
  {
    name: 'redirectUris',
    label: 'Redirect URIs',
    type: 'area',
    value: redirectUris.join('\n'),
    hint: 'One a line; compared character by character.',
  },
  html`<fieldset>
    <legend>Grants</legend>
    ${GRANT_TYPES.map((grant) => inputField(checkField(`grant.${grant}`, grant, grantTypes.includes(grant))))}
  </fieldset>`,
  checkField('isTrusted', 'Trusted: members are not asked for their consent', isTrusted),
];

/** What was given in the fields of {@link applicationParts}: the redirect URIs, one a line, the grants and the trust. */
export const applicationFields = (fields: Record<string, string>) => ({
  redirectUris: (fields.redirectUris ?? '').split(/\s+/).filter((uri) => uri !== ''),
  grantTypes: GRANT_TYPES.filter((grant) => fields[`grant.${grant}`] === 'yes'),
  isTrusted: fields.isTrusted === 'yes',
});

const rotateForm = (visit: Visit): Html | null =>
  visit.form(
    'rotate',
    html`${inputField({ name: 'overlap', label: 'How long both secrets are valid', value: '24h', options: OVERLAPS })}
    ${inputField(checkField('revokeTokens', 'The secret has leaked: also revoke all tokens', false))}`,
  );

const disableForm = (visit: Visit): Html | null =>
  visit.form(
    'disable',
    html`<p class="hint">Its credentials and its tokens are refused. Pending notifications are still delivered.</p>`,
  );
