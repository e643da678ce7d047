import { MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { checkField } from '../../../http/pages/fields.js';
import { notice, table } from '../../../http/pages/parts.js';
import type { Visit } from '../../../http/pages/site.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import type { Certification } from '../../../webhooks/certification/checks.js';
import { listHref } from '../notifications/notification-filter.js';
import { testOutcome } from '../receivers/receiver-parts.js';
import type { ClientDetails } from './client-details.js';

/** How long the old secret is used, by the form that replaces it: after a leak it only signs. */
export const OVERLAPS = {
  rotate: { '24h': '24 hours', '7d': '7 days', '1h': '1 hour', '0s': 'none: the old secret ends at once' },
  leaked: { '60m': '60 minutes', '15m': '15 minutes', '0s': 'not at all' },
};

/** The fields about a client, without their values. */
export const CLIENT_FIELDS = {
  name: { name: 'name', label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true },
  notifyUrl: { name: 'notifyUrl', label: 'Notify URL', type: 'url', maxLength: NOTIFY_URL_MAX_LENGTH },
  contact: { name: 'contact', label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH },
} as const;

const TESTED = 'Send a signed sample there first';
const OVERLAP_HINT =
  'Until then X-Signature is made with the old secret and X-Signature-Next with the new one, so nothing is lost while the receiver changes.';

/** The Notify URL and the secret, which the client changes too. */
export const ownForms = (visit: Visit, { client, account }: ClientDetails) =>
  html`<section class="card" id="notify-url">
      <h3>Notify URL</h3>
      ${visit.form('notify-url', [
        {
          ...CLIENT_FIELDS.notifyUrl,
          value: visit.query.notifyUrl ?? client.notifyUrl ?? '',
          seen: client.notifyUrl ?? '',
          isRequired: true,
        },
        ...(visit.clientId === null
          ? [checkField('isTested', `${TESTED}, and change nothing unless it is answered 2xx`, true)]
          : []),
      ])}
      ${client.notifyUrl && visit.form('test')}
    </section>
    <section class="card">
      <h3>Secret</h3>
      ${
        account.secrets.length > 1
          ? [visit.form('replace'), visit.form('finish-rotation')]
          : [
              visit.form('rotate', [
                {
                  name: 'overlap',
                  label: 'How long both secrets are valid',
                  options: OVERLAPS.rotate,
                  hint: OVERLAP_HINT,
                },
              ]),
              visit.form('leaked', [
                {
                  name: 'overlap',
                  label: 'How long the leaked secret still signs notifications',
                  options: OVERLAPS.leaked,
                },
                checkField('revokeTokens', 'Also revoke all tokens', true),
              ]),
            ]
      }
    </section>`;

/** Who is told by e-mail. */
export const contactForm = (visit: Visit, { client }: ClientDetails) =>
  visit.form('contact', [
    {
      ...CLIENT_FIELDS.contact,
      value: client.contact ?? '',
      hint: 'Is told by e-mail when a Notify URL fails. Empty: nobody is told.',
    },
  ]);

/** The page of a client's own settings in its portal. */
export const settingsPage = (
  visit: Visit,
  details: ClientDetails,
  test: TestResult | null,
  certification: Certification | null,
): Html =>
  html`${test && testOutcome(test)} ${certification && certified(certification)}
    ${!visit.mayChange && notice('warning', 'Your link lets you see everything and change nothing.')}
    <p>
      A changed Notify URL is tested first by a signed sample, and stays as it is unless that is answered 2xx.
      <a href="${listHref({ status: 'UNRESOLVED' }, visit.home)}">Send again what has failed</a>
    </p>
    <div class="columns">
      ${ownForms(visit, details)}
      <section class="card">
        <h3>Contact</h3>
        ${contactForm(visit, details)}
      </section>
      ${
        details.limits.environment === 'sandbox' &&
        html`<section class="card">
          <h3>Certification</h3>
          <p class="hint">
            Sends six notifications to the Notify URL: right ones, and ones that the receiver must refuse.
          </p>
          ${visit.form('certify')}
        </section>`
      }
    </div>`;

const certified = ({ passed, checks }: Certification) =>
  html`${passed ? notice('good', 'The receiver passed.') : notice('bad', 'The receiver did not pass.')}
  ${table(
    {
      Sent: ({ sent }) => `a notification ${sent}`,
      Passed: ({ passed }) => (passed ? 'yes' : 'no'),
      Why: ({ reason, remedy }) => `${reason} ${remedy ?? ''}`,
    },
    checks,
  )}`;
