import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { FORM_FIELD, unrestrictedForm } from '../frame/form.js';
import { PASSWORD_PATH, SIGN_IN_PATH } from '../frame/frame.js';
import { notice } from '../frame/parts.js';

export interface SignInView {
  form: string;
  returnTo: string;
  /** Shown again after a wrong password. */
  name: string;
  fault: string | null;
}

export const signInPage = ({ form, returnTo, name, fault }: SignInView): Html =>
  html`${fault === null ? null : notice('bad', fault)}
    <form method="post" action="${SIGN_IN_PATH}" class="change">
      <input type="hidden" name="${FORM_FIELD}" value="${form}" />
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label>
        Name
        <input name="name" value="${name}" autocomplete="username" autocapitalize="none" required />
      </label>
      <label>
        Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button class="primary">Sign in</button>
    </form>`;

/** `isFirst`: the operator whom the settings name. */
export function passwordPage(
  request: FastifyRequest,
  { isFirst, fault, isChanged }: { isFirst: boolean; fault: string | null; isChanged: boolean },
): Html {
  if (isFirst)
    return html`<p>
      Your name and password are the settings <code>OPS_USER</code> and <code>OPS_PASSWORD</code> of the server. Change
      them there, and restart Usher. All sessions of this operator then end.
    </p>`;
  const body = html`<label>
      Current password
      <input name="current" type="password" autocomplete="current-password" required />
    </label>
    <label>
      New password
      <input
        name="password"
        type="password"
        autocomplete="new-password"
        minlength="${MIN_PASSWORD_LENGTH}"
        maxlength="${MAX_PASSWORD_LENGTH}"
        required
      />
      <span class="hint">At least ${MIN_PASSWORD_LENGTH} characters. Your other sessions end.</span>
    </label>`;
  return html`${isChanged ? notice('good', 'Your password is changed.') : null}
  ${fault === null ? null : notice('bad', fault)}
  ${unrestrictedForm(request, { action: PASSWORD_PATH, body, button: 'Change password', kind: 'primary' })}`;
}
