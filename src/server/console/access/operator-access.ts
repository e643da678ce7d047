import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FixedCredentials } from '../../../auth/client-authentication/internal.guard.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { failuresText } from '../../../auth/sign-in/sessions.js';
import { parseBasicHeader } from '../../../http/basic-credentials.js';
import { html } from '../../../http/html.js';
import { hiddenField, passwordField, type Texts } from '../../../http/pages/fields.js';
import { setViewer, type Viewer } from '../../../http/pages/form.js';
import { notice } from '../../../http/pages/parts.js';
import type { Page, Visit } from '../../../http/pages/site.js';
import { forbidden, unauthorized, unprocessable } from '../../../http/problem.js';
import { OperatorSessions, type SessionOwner } from '../../../operators/operator-sessions.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { OPS_HEADERS, OPS_SITE, PASSWORD_PATH, SIGN_IN_PATH, SIGN_OUT_PATH } from '../frame/frame.js';
import { acceptsPage } from '../../../http/pages/page.js';
import { BrowserSessions, SAFE_METHODS } from './browser-sessions.js';

/** Also accepts METRICS_USER and METRICS_PASSWORD, which no other path accepts. */
const METRICS_PATH = '/ops/metrics';

/** What a viewer may post to: the routes about their own session and password. */
const OWN_PATHS = [SIGN_IN_PATH, SIGN_OUT_PATH, PASSWORD_PATH];

/** How operators get in and out: the check of every request at and below /ops before anything else, and the pages. */
@Injectable()
export class OperatorAccess extends BrowserSessions<SessionOwner> {
  constructor(
    private readonly credentials: FixedCredentials,
    private readonly signIns: OperatorSessions,
    private readonly operators: OperatorsService,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {
    super(signIns, '/ops', config.opsPublicUrl, config.publicUrl);
  }

  readonly pages: Page[] = [
    {
      path: SIGN_IN_PATH,
      show: (visit) => {
        const returnTo = returnPath(visit.query.return_to);
        return visit.viewer ? returnTo : this.signInPage(visit, returnTo);
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
    this.signOutPage(SIGN_IN_PATH),
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
            const known = this.read(request, 'known');
            const operator = await this.operators.get(name);
            if (!(await this.signIns.confirm({ name, password: current, known }, request)))
              throw unprocessable('the current password is wrong');
            const changed = await this.operators.setPassword(name, password, actor, operator);
            const begun = await this.signIns.open(changed, request);
            if (begun !== null) await this.begin(request, reply, begun);
          },
        },
      },
    },
  ];

  /** False if the browser was redirected to the sign-in page. Throws a problem to refuse the request. */
  async check(request: FastifyRequest, reply: FastifyReply) {
    void reply.headers(OPS_HEADERS);
    if (OPS_SITE.assets.some(({ path }) => path === request.routeOptions.url)) return true;
    const operator = await this.operatorOf(request);
    if (operator) setViewer(request, operator);
    else if (request.routeOptions.url !== SIGN_IN_PATH) return this.askToSignIn(request, reply);
    if (!SAFE_METHODS.includes(request.method)) this.checkWrite(request, operator);
    return true;
  }

  /** An Authorization header takes precedence over a session. Null without either, or if the session has ended. */
  async operatorOf(request: FastifyRequest) {
    const { operator, metrics, environment } = this.config;
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const isScrape = request.routeOptions.url === METRICS_PATH;
      const isScraper = isScrape && parseBasicHeader(authorization)[0]?.id === metrics?.user;
      const expected = (isScraper && metrics) || operator;
      // A scraper repeats an old password until it gets the new one, so it is counted apart from operators.
      await this.credentials.check(request, 'operator', expected, expected === metrics ? 'metrics' : 'operator');
      return { name: expected.user, session: null, environment, mayChange: true, clientId: null };
    }
    const owner = await this.signedIn(request);
    return owner && { ...owner, environment, mayChange: owner.role === 'operator', clientId: null };
  }

  /** A browser that opens a page is redirected to the sign-in; any other request is answered 401. */
  private async askToSignIn(request: FastifyRequest, reply: FastifyReply) {
    if (SAFE_METHODS.includes(request.method) && acceptsPage(request)) {
      void reply.redirect(`${SIGN_IN_PATH}?${new URLSearchParams({ return_to: request.url })}`, 303);
      return false;
    }
    // A Basic challenge would make the browser ask for a password in a window of its own, also after a sign-out in another tab.
    if (this.read(request, 'session') !== null || acceptsPage(request))
      throw unauthorized('the session has ended; sign in again at /ops/sign-in', 'Session realm="usher ops"');
    await this.credentials.check(request, 'operator', this.config.operator);
    return false;
  }

  private checkWrite(request: FastifyRequest, operator: Viewer | null) {
    this.checkPage(request, operator === null || operator.session !== null);
    if (operator?.mayChange === false && !OWN_PATHS.includes(request.routeOptions.url ?? ''))
      throw forbidden(
        'your role is viewer, which can read but not change anything; ask an operator for the role operator',
      );
  }

  private async signIn(fields: Texts, visit: Visit) {
    const { request, reply } = visit;
    const { password = '' } = fields;
    const name = (fields.name ?? '').trim();
    const returnTo = returnPath(fields.return_to);
    const isValid = this.isOwnForm(visit, fields);
    const known = this.read(request, 'known');
    const begun = isValid ? await this.signIns.signIn({ name, password, known }, request) : null;
    if (begun === null) {
      const fault = isValid
        ? 'The name or the password is wrong.'
        : 'This form is no longer valid. Sign in again; your browser must accept cookies of this server.';
      return { ...this.signInPage(visit, returnTo, name, fault), status: 403 };
    }
    await this.begin(request, reply, begun);
    if (begun.failures === 0) return returnTo;
    const body = html`${notice('warning', failuresText(begun.failures))}
      <p><a href="${returnTo}">Continue</a></p>`;
    return { title: 'Signed in', body };
  }

  private signInPage(visit: Visit, returnTo: string, name = '', fault?: string) {
    const body = html`${fault && notice('bad', fault)}
      <form method="post" action="${SIGN_IN_PATH}" class="change">
        ${this.formField(visit)} ${hiddenField('return_to', returnTo)}
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

/** The pages that a sign-in may lead to. Anything else would be an open redirector. */
const RETURN_TO = /^\/ops([/?][\x21-\x5b\x5d-\x7e]*)?$/;

const returnPath = (path = '/ops') => (RETURN_TO.test(path) && !path.startsWith(SIGN_IN_PATH) ? path : '/ops');
