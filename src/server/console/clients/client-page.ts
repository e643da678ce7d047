import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import { GRANT_TYPES, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import type { PortalLink } from '../../../clients/portal.entity.js';
import { Html, html } from '../../../http/html.js';
import { shownAmount } from '../../../orders/movie-order.js';
import type { Rate } from '../../../values/duration.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import { checkField, type FormPart, hrefOf, type Texts } from '../../../http/pages/fields.js';
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
import { memberLink, orderLink } from '../frame/links.js';
import { failureNotice } from '../overview/problems.js';
import { listHref, notificationTable } from '../notifications/notification-list.js';
import { healthTable, pausing } from '../receivers/receiver-parts.js';
import { type ClientDetails, MAX_PENDING } from './clients-data.js';

export const clientPage = (visit: Visit, details: ClientDetails, links: PortalLink[]) =>
  html`${details.failing.map((one) => failureNotice(one))} ${summary(visit, details)}
    <h2>Notifications</h2>
    ${notifications(visit, details)}
    <h2>Receivers</h2>
    ${healthTable(visit, details.health)}
    ${pausing(visit, details.account.deliveriesPaused, html`A pause holds back all notifications of this client, to every host.`)}
    <h2>Orders</h2>
    ${table(ORDER_COLUMNS, details.orders, 'Its orders will be here.')}
    <h2>Members</h2>
    ${table(
      {
        Member: ({ ownerId, name }) => (name === undefined ? ownerId : memberLink({ id: ownerId, name })),
        Since: { time: 'givenAt' },
      },
      details.members,
      'The members for whom it may act will be here.',
    )}
    <h2>Notify URLs</h2>
    ${table(urls(visit), details.urlChanges, 'Changes of the Notify URL will be here.')}
    <h2>Sign-in failures</h2>
    ${table(
      {
        When: { time: 'createdAt' },
        From: ({ address }) => address ?? 'several addresses',
        Wrong: { number: ({ detail }) => String(detail.failed ?? 0) },
      },
      details.signInFailures,
      'Wrong secrets will be here, counted once a minute.',
    )}
    <h2 id="portal">Portal</h2>
    ${table(
      {
        Link: ({ withdrawnAt, openedAt, expiresAt }) =>
          statusBadge(withdrawnAt ? 'withdrawn' : openedAt ? 'opened' : expiresAt < Date.now() ? 'expired' : 'open'),
        'May change': ({ mayChange }) => (mayChange ? 'yes' : 'no'),
        'Made by': 'createdBy',
        Expires: { time: 'expiresAt' },
        Opened: ({ openedAt, openedFrom }) => openedAt && html`${time(openedAt)} from ${openedFrom}`,
        '': ({ id, withdrawnAt }) => (withdrawnAt ? null : visit.form('withdraw-link', id)),
      },
      links,
      'A link lets the client see its notifications, and why they failed, without the API.',
    )}
    ${visit.form('portal-link')} ${changes(visit, details)}`;

/** Also at the top of the portal, without what operators do. */
export function summary(visit: Visit, { client, account, isTrusted, pending, limits }: ClientDetails) {
  const { id, notifyUrl, contact, createdAt } = client;
  const most = limits.pendingWebhookLimit;
  return html`<section class="card">
    ${facts({
      State: stateSince(client),
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
                  ${signs}${expiresAt && html` until ${time(expiresAt)}`}${hasLeaked && ', refused for all else'}
                </div>`,
            )}`,
      Pending:
        most === null
          ? `${pending}${pending === MAX_PENDING ? ' or more' : ''}`
          : `${pending} of ${most} notifications; at the limit new orders are refused`,
      'Token requests': rate(limits.tokenRateLimit),
      'New orders': rate(limits.orderRateLimit),
      'Wrong secrets': `${rate(limits.authFailureLimit)} from one address`,
    })}
    ${
      visit.clientId === null &&
      html`<p class="actions">
        ${visit.mayChange && html`<a class="button" href="#changes">Change, rotate or disable</a>`}
        <a class="button" href="${hrefOf('/ops/audit', { subject: `client:${id}` })}">Audit of this client</a>
      </p>`
    }
  </section>`;
}

const rate = (limit: Rate | null) => (limit === null ? 'not limited' : `${limit.count} in ${limit.seconds} s`);

export function notifications(visit: Visit, { client: { id }, webhooks }: ClientDetails) {
  if (webhooks.length === 0)
    return emptyState('Its notifications will be here. The first one follows its first completed order.');
  return html`${notificationTable(visit, webhooks)}
    <p class="actions">
      <a class="button" href="${listHref({ client: id })}">All of them</a>
      <a class="button" href="${listHref({ client: id, status: 'UNRESOLVED' })}">Failed, not sent again</a>
    </p>`;
}

export const ORDER_COLUMNS: Columns<ClientDetails['orders'][number]> = {
  Order: ({ key }) => orderLink(key),
  Status: ({ status }) => status.toLowerCase(),
  Notification: ({ delivery }) =>
    delivery === null ? html`<span class="dim">none yet</span>` : statusBadge(delivery.status),
  'To pay': {
    number: ({ payableAmount, currencyCode }) => `${shownAmount(payableAmount, currencyCode)} ${currencyCode}`,
  },
  Created: { time: 'createdAt' },
};

const urls = ({ path, mayChange }: Visit): Columns<AuditEvent> => ({
  When: { time: 'createdAt' },
  Who: 'actor',
  From: ({ detail: { from } }) => String(from ?? ''),
  To: ({ detail: { to, host } }) => String(to ?? host),
  ...(mayChange && {
    Back: ({ detail: { from } }) =>
      from
        ? html`<a href="${hrefOf(path, { notifyUrl: String(from) })}#notify-url">Back to the previous one</a>`
        : null,
  }),
});

/** During a rotation the new secret can be replaced, and the old one can be ended. */
const secretForms = ({ secrets }: ClientDetails['account']) =>
  secrets.length > 1 ? ['replace', 'finish-rotation'] : ['rotate', 'leaked'];

export const settingsPage = (visit: Visit, { client, account, limits }: ClientDetails) =>
  html`${!visit.mayChange && notice('warning', 'Your link lets you see everything and change nothing.')}
    <p>
      A signed sample is sent to a new Notify URL first. The URL is set only if the answer is 2xx.
      <a href="${listHref({ status: 'UNRESOLVED' })}">Send again what has failed</a>
    </p>
    ${visit.forms({
      'Notify URL': ['notify-url', client.notifyUrl && 'test', limits.environment === 'sandbox' && 'certify'],
      Contact: ['contact'],
      Secret: secretForms(account),
    })}`;

const changes = (visit: Visit, { client, account }: ClientDetails) =>
  visit.forms({
    'Notify URL': ['notify-url', client.notifyUrl && 'test'],
    'Name and contact': ['rename', 'contact'],
    'Grants and redirect URIs': ['application'],
    Secret: secretForms(account),
    Access: ['revoke-tokens', client.disabledAt === null ? 'disable' : 'enable'],
  });

/** The fields about a client, without their values. */
export const CLIENT_FIELDS = {
  name: { name: 'name', label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true },
  notifyUrl: { name: 'notifyUrl', label: 'Notify URL', type: 'url', maxLength: NOTIFY_URL_MAX_LENGTH },
  contact: { name: 'contact', label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH },
} as const;

/** Also a part of the form for a new client. */
export const applicationParts = ({ redirectUris, grantTypes, isTrusted }: Application): FormPart[] => [
  {
    name: 'redirectUris',
    label: 'Redirect URIs',
    type: 'area',
    value: redirectUris.join('\n'),
    hint: 'One URI per line. They are compared character by character.',
  },
  new Html('<fieldset><legend>Grants</legend>'),
  ...GRANT_TYPES.map((grant) => checkField(`grant.${grant}`, grant, grantTypes.includes(grant))),
  new Html('</fieldset>'),
  checkField('isTrusted', 'Trusted: members are not asked for their consent', isTrusted),
];

export type Application = ReturnType<typeof applicationFields>;

export const applicationFields = (fields: Texts) => ({
  redirectUris: (fields.redirectUris ?? '').split(/\s+/).filter((uri) => uri !== ''),
  grantTypes: GRANT_TYPES.filter((grant) => fields[`grant.${grant}`] === 'yes'),
  isTrusted: fields.isTrusted === 'yes',
});
