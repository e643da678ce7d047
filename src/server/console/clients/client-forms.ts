import { GRANT_TYPES, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { checkField, type FormPart, inputField } from '../../../http/pages/fields.js';
import type { Visit } from '../../../http/pages/site.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import type { ClientDetails } from './client-details.js';

export const OVERLAPS = {
  rotate: { '24h': '24 hours', '7d': '7 days', '1h': '1 hour', '0s': 'none: the old secret ends at once' },
  leaked: { '60m': '60 minutes', '15m': '15 minutes', '0s': 'not at all' },
};

/** The forms of a client's page, below its facts. */
export const changes = (visit: Visit, details: ClientDetails): Html =>
  html`<h2 id="changes">Changes</h2>
    <div class="columns">
      <section class="card" id="notify-url">
        <h3>Notify URL</h3>
        ${visit.form('notify-url', [
          {
            ...CLIENT_FIELDS.notifyUrl,
            value: visit.query.notifyUrl ?? details.client.notifyUrl ?? '',
            seen: details.client.notifyUrl ?? '',
            isRequired: true,
          },
          checkField(
            'isTested',
            'Send a signed sample there first, and change nothing unless it is answered 2xx',
            true,
          ),
        ])}
        ${details.client.notifyUrl && visit.form('test')}
      </section>
      <section class="card">
        <h3>Name and contact</h3>
        ${visit.form('rename', [{ ...CLIENT_FIELDS.name, value: details.client.name }])}
        ${visit.form('contact', [
          {
            ...CLIENT_FIELDS.contact,
            value: details.client.contact ?? '',
            hint: 'Is told by e-mail when a Notify URL fails. Empty: nobody is told.',
          },
        ])}
      </section>
      <section class="card">
        <h3>Grants and redirect URIs</h3>
        ${applicationForm(visit, details)}
      </section>
      <section class="card">
        <h3>Secret</h3>
        ${
          details.account.secrets.length > 1
            ? [visit.form('replace'), visit.form('finish-rotation')]
            : [
                visit.form('rotate', [
                  { name: 'overlap', label: 'How long both secrets are valid', options: OVERLAPS.rotate },
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
      </section>
      <section class="card">
        <h3>Access</h3>
        ${visit.form('revoke-tokens')}
        ${
          details.client.disabledAt === null
            ? visit.form(
                'disable',
                html`<p class="hint">
                  Its credentials and its tokens are refused. Pending notifications are still delivered.
                </p>`,
              )
            : visit.form('enable')
        }
      </section>
    </div>`;

/** The fields about a client, without their values. */
export const CLIENT_FIELDS = {
  name: { name: 'name', label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true },
  notifyUrl: { name: 'notifyUrl', label: 'Notify URL', type: 'url', maxLength: NOTIFY_URL_MAX_LENGTH },
  contact: { name: 'contact', label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH },
} as const;

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
