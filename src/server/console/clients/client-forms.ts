import { GRANT_TYPES, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import { areaField, checkField, selectField, textField } from '../fields/fields.js';
import type { Visit } from '../frame/pages.js';
import type { ClientDetails } from './client-details.js';

export const OVERLAPS: [value: string, text: string][] = [
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['1h', '1 hour'],
  ['0s', 'none: the old secret ends at once'],
];

/** The forms of a client's page, below its facts. */
export const changes = (visit: Visit, details: ClientDetails): Html =>
  html`<h2 id="changes">Changes</h2>
    <div class="columns">
      <section class="card" id="notify-url">
        <h3>Notify URL</h3>
        ${notifyUrlForms(visit, details)}
      </section>
      <section class="card">
        <h3>Name and contact</h3>
        ${nameForm(visit, details)} ${contactForm(visit, details)}
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

function notifyUrlForms(visit: Visit, { client: { notifyUrl } }: ClientDetails): Html {
  const field = { ...visit.field('notify-url', 'notifyUrl', notifyUrl ?? ''), maxLength: NOTIFY_URL_MAX_LENGTH };
  const { refusal } = visit;
  const isTested = refusal?.form === 'notify-url' ? refusal.given.isTested === 'yes' : true;
  const body = html`${textField({ ...field, label: 'Notify URL', type: 'url', isRequired: true })}
  ${checkField('isTested', 'Send a signed sample there first, and change nothing unless it is answered 2xx', isTested)}`;
  return html`${visit.form('notify-url', body)} ${notifyUrl === null ? null : visit.form('test')}`;
}

function nameForm(visit: Visit, { client: { name } }: ClientDetails): Html | null {
  const field = visit.field('rename', 'name', name);
  return visit.form(
    'rename',
    textField({ ...field, label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true }),
  );
}

function contactForm(visit: Visit, { client: { contact } }: ClientDetails): Html | null {
  const field = visit.field('contact', 'contact', contact ?? '');
  const hint = 'Is told by e-mail when a Notify URL fails. Empty: nobody is told.';
  return visit.form(
    'contact',
    textField({ ...field, label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH, hint }),
  );
}

function applicationForm(visit: Visit, { account, isTrusted }: ClientDetails): Html | null {
  const uris = visit.field('application', 'redirectUris', account.redirectUris.join('\n'));
  const given = visit.refusal?.form === 'application' ? visit.refusal.given : null;
  const grants = given ? GRANT_TYPES.filter((grant) => given[`grant.${grant}`] === 'yes') : account.grants;
  return visit.form('application', applicationFieldset(uris, grants, given ? given.isTrusted === 'yes' : isTrusted));
}

/** Also a part of the form for a new client. */
export const applicationFieldset = (
  uris: { name: string; value: string; fault?: string | undefined },
  grants: readonly string[],
  isTrusted: boolean,
): Html =>
  html`${areaField({ ...uris, label: 'Redirect URIs', hint: 'One a line; compared character by character.' })}
    <fieldset>
      <legend>Grants</legend>
      ${GRANT_TYPES.map((grant) => checkField(`grant.${grant}`, grant, grants.includes(grant)))}
    </fieldset>
    ${checkField('isTrusted', 'Trusted: members are not asked for their consent', isTrusted)}`;

const rotateForm = (visit: Visit): Html | null =>
  visit.form(
    'rotate',
    html`${selectField({ name: 'overlap', label: 'How long both secrets are valid', value: '24h' }, OVERLAPS)}
    ${checkField('revokeTokens', 'The secret has leaked: also revoke all tokens', false)}`,
  );

const disableForm = (visit: Visit): Html | null =>
  visit.form(
    'disable',
    html`<p class="hint">Its credentials and its tokens are refused. Pending notifications are still delivered.</p>`,
  );
