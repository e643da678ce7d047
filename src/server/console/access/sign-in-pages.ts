import { Injectable } from '@nestjs/common';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { failuresText } from '../../../auth/sign-in/sessions.js';
import { html } from '../../../http/html.js';
import { unprocessable } from '../../../http/problem.js';
import { OperatorSessions } from '../../../operators/operator-sessions.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import { hiddenField, passwordField, type Texts } from '../../../http/pages/fields.js';
import { PASSWORD_PATH, SIGN_IN_PATH, SIGN_OUT_PATH } from '../frame/frame.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { notice } from '../../../http/pages/parts.js';
import { OperatorAccess } from './operator-access.js';

/** The pages that a sign-in may lead to. Anything else would be an open redirector. */
const RETURN_TO = /^\/ops([/?][\x21-\x5b\x5d-\x7e]*)?$/;

@Injectable()
export class SignInPages {
  constructor(
    private readonly signIns: OperatorSessions,
    private readonly operators: OperatorsService,
    private readonly sessions: OperatorAccess,
  ) {}

  readonly pages: Page[] = [
    {
      path: SIGN_IN_PATH,
      show: (visit) => {
        const returnTo = returnPath(visit.query.return_to);
        return visit.viewer ? returnTo : this.signInPage(visit, { returnTo, name: '' });
      },
      actions: {
        'sign-in': {
          at: '',
          button: 'Sign in',
          kind: 'primary',
          answer: (fields, visit) => this.signIn(fields, visit),
        },
      },
    },
    signOutPage(SIGN_OUT_PATH, SIGN_IN_PATH, () => this.sessions),
    {
      path: PASSWORD_PATH,
      show: (visit) => ({
        title: 'Your password',
        body: html`${
          this.operators.isFirst(visit.viewer?.name ?? '')
            ? html`<p>
                Your name and password are the settings <code>OPS_USER</code> and <code>OPS_PASSWORD</code> of the
                server. Change them there, and restart Usher. All sessions of this operator then end.
              </p>`
            : visit.form('change')
        }`,
      }),
      actions: {
        change: {
          at: '',
          button: 'Change password',
          fields: () => [
            passwordField('Current password', { name: 'current', autocomplete: 'current-password' }),
            passwordField('New password', {
              maxLength: MAX_PASSWORD_LENGTH,
              hint: `At least ${MIN_PASSWORD_LENGTH} characters. Your other sessions end.`,
            }),
          ],
          kind: 'primary',
          isForViewers: true,
          done: 'Your password is changed.',
          // Asks for the current password, so that somebody else at an open browser cannot take the account over.
          run: async ({ current = '', password = '' }, { request, reply, viewer, actor }) => {
            const name = viewer?.name ?? '';
            const known = this.sessions.read(request, 'known');
            await this.operators.get(name);
            if (!(await this.signIns.confirm({ name, password: current, known }, request)))
              throw unprocessable('the current password is wrong');
            const begun = await this.signIns.open(await this.operators.setPassword(name, password, actor), request);
            if (begun !== null) await this.sessions.begin(request, reply, begun);
          },
        },
      },
    },
  ];

  private async signIn(fields: Texts, visit: Visit): Promise<View | string> {
    const { request, reply } = visit;
    const { name: given = '', password = '' } = fields;
    const name = given.trim();
    const returnTo = returnPath(fields.return_to);
    const isValid = this.sessions.isOwnForm(visit, fields);
    const known = this.sessions.read(request, 'known');
    const begun = isValid ? await this.signIns.signIn({ name, password, known }, request) : null;
    if (begun === null) {
      const fault = isValid
        ? 'The name or the password is wrong.'
        : 'This form is no longer valid. Sign in again; your browser must accept cookies of this server.';
      return { ...this.signInPage(visit, { returnTo, name, fault }), status: 403 };
    }
    await this.sessions.begin(request, reply, begun);
    if (begun.failures === 0) return returnTo;
    const body = html`${notice('warning', failuresText(begun.failures))}
      <p><a href="${returnTo}">Continue</a></p>`;
    return { title: 'Signed in', body };
  }

  private signInPage(
    visit: Visit,
    { returnTo, name, fault }: { returnTo: string; name: string; fault?: string },
  ): View {
    const body = html`${fault && notice('bad', fault)}
      <form method="post" action="${SIGN_IN_PATH}" class="change">
        ${this.sessions.formField(visit)} ${hiddenField('return_to', returnTo)}
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
    return { title: 'Sign in', body };
  }
}

const returnPath = (path = '/ops') => (RETURN_TO.test(path) && !path.startsWith(SIGN_IN_PATH) ? path : '/ops');

/** The page that ends a session. `next`: where it redirects to. */
export const signOutPage = (path: string, next: string, sessions: () => Pick<OperatorAccess, 'end'>): Page => ({
  path,
  show: () => next,
  actions: {
    'sign-out': {
      at: '',
      button: 'Sign out',
      answer: async (_, { request, reply }) => {
        await sessions().end(request, reply);
        return next;
      },
    },
  },
});
