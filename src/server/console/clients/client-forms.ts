import type { FastifyRequest } from 'fastify';
import { GRANT_TYPES, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import { areaField, checkField, selectField, textField } from '../fields/fields.js';
import { faultText, type Refusal, shownField } from '../fields/refusal.js';
import { type PostForm, postForm } from '../frame/form.js';
import type { ClientDetails } from './client-details.js';

/** The forms of a client's page. `refusal` is of the form that was sent last, if it was refused. */
export interface Forms {
  request: FastifyRequest;
  details: ClientDetails;
  refusal: Refusal | null;
}

export const OVERLAPS: [value: string, text: string][] = [
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['1h', '1 hour'],
  ['0s', 'none: the old secret ends at once'],
];

export const clientPath = (id: string): string => `/ops/clients/${encodeURIComponent(id)}`;

const formFor = ({ request, details }: Forms, action: string, form: Omit<PostForm, 'action'>): Html | null =>
  postForm(request, { ...form, action: `${clientPath(details.client.id)}/${action}` });

const fieldFor = ({ refusal }: Forms, form: string, name: string, value: string) =>
  shownField(refusal, form, name, value);

/** The fault of a form without a text field. */
function faultOf({ refusal }: Forms, form: string): Html | null {
  if (refusal?.form !== form) return null;
  return html`<span class="field-fault" role="alert">${faultText(refusal.problem)}</span>`;
}

export function nameForm(forms: Forms): Html | null {
  const { name } = forms.details.client;
  const field = fieldFor(forms, 'rename', 'name', name);
  const body = textField({ ...field, label: 'Name', maxLength: MAX_CLIENT_NAME_LENGTH, isRequired: true });
  return formFor(forms, 'rename', { body, button: 'Rename' });
}

export function notifyUrlForm(forms: Forms): Html {
  const { notifyUrl } = forms.details.client;
  const field = fieldFor(forms, 'notify-url', 'notifyUrl', notifyUrl ?? '');
  const isTested = forms.refusal?.form === 'notify-url' ? forms.refusal.given.isTested === 'yes' : true;
  const change = formFor(forms, 'notify-url', {
    body: html`${textField({ ...field, label: 'Notify URL', type: 'url', maxLength: NOTIFY_URL_MAX_LENGTH, isRequired: true })}
    ${checkField('isTested', 'Send a signed sample there first, and change nothing unless it is answered 2xx', isTested)}`,
    button: 'Set the Notify URL',
  });
  const test =
    notifyUrl === null ? null : formFor(forms, 'test', { button: 'Send a test notification to the present URL' });
  return html`${change} ${test} ${faultOf(forms, 'test')}`;
}

export function contactForm(forms: Forms): Html | null {
  const field = fieldFor(forms, 'contact', 'contact', forms.details.client.contact ?? '');
  const hint = 'Is told by e-mail when a Notify URL fails. Empty: nobody is told.';
  const body = textField({ ...field, label: 'Contact', type: 'email', maxLength: MAX_EMAIL_LENGTH, hint });
  return formFor(forms, 'contact', { body, button: 'Set the contact' });
}

export function applicationForm(forms: Forms): Html | null {
  const { account, isTrusted } = forms.details;
  const uris = fieldFor(forms, 'application', 'redirectUris', account.redirectUris.join('\n'));
  const given = forms.refusal?.form === 'application' ? forms.refusal.given : null;
  const grants = given ? GRANT_TYPES.filter((grant) => given[`grant.${grant}`] === 'yes') : account.grants;
  return formFor(forms, 'application', {
    body: applicationFieldset(uris, grants, given ? given.isTrusted === 'yes' : isTrusted),
    button: 'Set grants and redirect URIs',
  });
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

export function secretForms(forms: Forms): Html {
  const { account } = forms.details;
  const overlap = { name: 'overlap', label: 'How long both secrets are valid', value: '24h' };
  const rotate = formFor(forms, 'rotate', {
    body: html`${selectField(overlap, OVERLAPS)}
    ${checkField('revokeTokens', 'The secret has leaked: also revoke all tokens', false)} ${faultOf(forms, 'rotate')}`,
    button: 'Issue a new secret',
    kind: 'danger',
    confirm: 'The integrator will get the new secret from me',
  });
  const finish = formFor(forms, 'finish-rotation', {
    body: faultOf(forms, 'finish-rotation'),
    button: 'End the old secret now',
    kind: 'danger',
    confirm: 'The integrator uses the new secret',
  });
  return html`${account.secrets.length > 1 ? finish : rotate}`;
}

export function dangerForms(forms: Forms): Html {
  const { disabledAt } = forms.details.client;
  const revoke = formFor(forms, 'revoke-tokens', {
    body: faultOf(forms, 'revoke-tokens'),
    button: 'Revoke all tokens',
    kind: 'danger',
    confirm: 'The client must request new tokens',
  });
  const disable = formFor(forms, 'disable', {
    body: html`<p class="hint">
        Its credentials and its tokens are refused. Pending notifications are still delivered.
      </p>
      ${faultOf(forms, 'disable')}`,
    button: 'Disable the client',
    kind: 'danger',
    confirm: 'The client cannot use the API any more',
  });
  const enable = formFor(forms, 'enable', { button: 'Enable the client' });
  return html`${revoke} ${disabledAt === null ? disable : enable}`;
}
