import { Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { queryOf } from '../auth/authorize/authorization-request.js';
import { AuthorizationSite } from '../auth/authorize/authorization-site.js';
import { Authorizations, type AuthorizationTarget } from '../auth/authorize/authorizations.js';
import { failuresText } from '../auth/sign-in/sessions.js';
import type { HttpRequest, HttpResponse } from '../http/exchange.js';
import { UsherRoutes } from '../http/oauth-route.js';
import { PageRoute, seeOther, sendPage } from '../http/pages/page.js';
import { Problem } from '../http/problem.js';
import { MemberSessions } from './member-sessions.js';
import { type Html, html } from '../http/html.js';

const SIGN_IN = '/auth/sign-in';
const SIGN_OUT = '/auth/sign-out';

/** The pages of this server that a sign-in may lead to. Anything else would be an open redirector. */
const RETURN_TO = /^\/auth\/(authorize\?[\x21-\x7e]*|connections)$/;
const DEFAULT_RETURN = '/auth/connections';

export const WRONG_SIGN_IN = 'The name or the password is wrong.';

type SignInForm = Partial<Record<'form' | 'return_to' | 'name' | 'password', unknown>>;

/** Where the built-in members sign in and out. */
@Controller('auth')
@UsherRoutes()
export class SignInController {
  constructor(
    private readonly site: AuthorizationSite,
    private readonly authorizations: Authorizations,
    private readonly members: MemberSessions,
  ) {}

  @Get('sign-in')
  @PageRoute()
  async show(@Req() request: HttpRequest, @Res() response: HttpResponse, @Query('return_to') given: unknown) {
    await this.sendSignIn(request, response, { returnTo: returnPath(given), name: '', fault: null });
  }

  @Post('sign-in')
  @PageRoute()
  async signIn(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form, return_to, name, password } = (request.body ?? {}) as SignInForm;
    this.site.forms.check(request.headers, SIGN_IN, form);
    const returnTo = returnPath(return_to);
    const given = { name: textOf(name), password: textOf(password) };
    const failures = await this.members.signIn(given, request, response);
    if (failures !== null) {
      // A form from before the sign-in is void, so nobody can have prepared one.
      this.site.forms.renew(response);
      const next = this.site.url(returnTo);
      if (failures === 0) return seeOther(response, next);
      return sendPage(response, 200, { title: 'Signed in', body: failuresPage(failures, next) });
    }
    await this.sendSignIn(request, response, { returnTo, name: given.name, fault: WRONG_SIGN_IN });
  }

  @Get('sign-out')
  @PageRoute()
  async showSignOut(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const owner = await this.site.currentOwner(request);
    const form = this.site.forms.seal(request.headers, response, SIGN_OUT);
    const body = owner ? signOutPage(this.site.url(SIGN_OUT), form, owner.name) : SIGNED_OUT;
    sendPage(response, 200, { title: 'Sign out', body });
  }

  @Post('sign-out')
  @PageRoute()
  async signOut(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form } = (request.body ?? {}) as SignInForm;
    this.site.forms.check(request.headers, SIGN_OUT, form);
    await this.members.signOut(request, response);
    this.site.forms.renew(response);
    seeOther(response, this.site.url(SIGN_OUT));
  }

  private async sendSignIn(
    request: HttpRequest,
    response: HttpResponse,
    given: Pick<SignInView, 'returnTo' | 'name' | 'fault'>,
  ): Promise<void> {
    const target = await this.targetOf(given.returnTo);
    const form = this.site.forms.seal(request.headers, response, SIGN_IN);
    const view = { ...given, action: this.site.url(SIGN_IN), form, application: target && target.client.name };
    const body = signInPage(view);
    const formTarget = target && new URL(target.redirectUri).origin;
    sendPage(response, given.fault === null ? 200 : 403, { title: 'Sign in', body, formTarget });
  }

  /** Null for a request that leads nowhere: the page after the sign-in will say so. */
  private async targetOf(returnTo: string): Promise<AuthorizationTarget | null> {
    if (!returnTo.includes('?')) return null;
    return this.authorizations.targetOf(queryOf(returnTo)).catch((error: unknown) => {
      if (error instanceof Problem) return null;
      throw error;
    });
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const returnPath = (given: unknown): string => (RETURN_TO.test(textOf(given)) ? textOf(given) : DEFAULT_RETURN);

interface SignInView {
  action: string;
  form: string;
  returnTo: string;
  /** Shown again after a wrong password. */
  name: string;
  /** The application that the member comes from; null if it is none. */
  application: string | null;
  fault: string | null;
}

const signInPage = ({ action, form, returnTo, name, application, fault }: SignInView): Html =>
  html`<h1>Sign in</h1>
    ${application && html`<p>to continue to <strong>${application}</strong></p>`}
    ${fault && html`<p class="note" role="alert" id="fault">${fault}</p>`}
    <form method="post" action="${action}">
      <input type="hidden" name="form" value="${form}" />
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label for="name">Member name or e-mail address</label>
      <input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" required />
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required />
      <p class="buttons"><button class="main">Sign in</button></p>
    </form>`;

const failuresPage = (failures: number, next: string): Html =>
  html`<h1>You are signed in</h1>
    <p class="note" role="status">${failuresText(failures)}</p>
    <p><a href="${next}">Continue</a></p>`;

const signOutPage = (action: string, form: string, owner: string): Html =>
  html`<h1>Sign out</h1>
    <p>You are signed in as <strong>${owner}</strong>.</p>
    <form method="post" action="${action}">
      <input type="hidden" name="form" value="${form}" />
      <p class="buttons"><button class="main">Sign out</button></p>
    </form>`;

const SIGNED_OUT = html`<h1>You are signed out</h1>
  <p>Applications that you connected can still use your account.</p>`;
