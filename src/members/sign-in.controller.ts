import { Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { queryOf } from '../auth/authorize/authorization-request.js';
import { AuthorizationSite } from '../auth/authorize/authorization-site.js';
import {
  AuthorizationResponses,
  Authorizations,
  type AuthorizationTarget,
  DECLINED,
} from '../auth/authorize/authorizations.js';
import type { HttpRequest, HttpResponse } from '../http/exchange.js';
import { UsherRoutes } from '../http/oauth-route.js';
import { formFields } from '../http/pages/form.js';
import { type BrowserPage, link, PageRoute, seeOther, sendPage } from '../http/pages/page.js';
import { nullForProblem } from '../http/problem.js';
import { MemberSessions } from './member-sessions.js';
import { html } from '../http/html.js';
import { filled } from '../values/member-texts.js';

const SIGN_IN = '/auth/sign-in';
const SIGN_OUT = '/auth/sign-out';

/** The pages of this server that a sign-in may lead to. Anything else would be an open redirector. */
const RETURN_TO = /^\/auth\/(authorize\?[\x21-\x7e]*|connections)$/;
const DEFAULT_RETURN = '/auth/connections';

@Controller('auth')
@UsherRoutes()
export class SignInController {
  constructor(
    private readonly site: AuthorizationSite,
    private readonly authorizations: Authorizations,
    private readonly responses: AuthorizationResponses,
    private readonly members: MemberSessions,
  ) {}

  @Get('sign-in')
  @PageRoute()
  async show(@Req() request: HttpRequest, @Res() response: HttpResponse, @Query('return_to') given: unknown) {
    await this.sendSignIn(request, response, { returnTo: returnPath(given), name: '', isWrong: false });
  }

  @Post('sign-in')
  @PageRoute()
  async signIn(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form, return_to, decision, name: typed = '', password = '' } = formFields(request);
    // Keyboards of phones put a space after a name that they complete.
    const name = typed.trim();
    this.site.forms.check(request.headers, SIGN_IN, form);
    const returnTo = returnPath(return_to);
    if (decision === 'decline')
      return this.responses.send(response, await this.authorizations.targetOf(queryOf(returnTo)), DECLINED);
    const failures = await this.members.signIn({ name, password }, request, response);
    if (failures !== null) {
      // Earlier sign-in forms become invalid, because somebody else may have prepared one.
      this.site.forms.cookie.renew(response);
      const next = this.site.url(returnTo);
      if (failures === 0) return seeOther(response, next);
      return sendPage(response, this.site.brand, failuresPage(this.site, failures, next));
    }
    await this.sendSignIn(request, response, { returnTo, name, isWrong: true });
  }

  @Get('sign-out')
  @PageRoute()
  async showSignOut(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const owner = await this.site.currentOwner(request);
    const form = this.site.forms.seal(request.headers, response, SIGN_OUT);
    sendPage(response, this.site.brand, owner ? signOutPage(this.site, form, owner.name) : signedOutPage(this.site));
  }

  @Post('sign-out')
  @PageRoute()
  async signOut(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form } = formFields(request);
    this.site.forms.check(request.headers, SIGN_OUT, form);
    await this.members.signOut(request, response);
    this.site.forms.cookie.renew(response);
    seeOther(response, this.site.url(SIGN_OUT));
  }

  private async sendSignIn(request: HttpRequest, response: HttpResponse, given: GivenSignIn): Promise<void> {
    const target = await this.targetOf(given.returnTo);
    const form = this.site.forms.seal(request.headers, response, SIGN_IN);
    sendPage(response, this.site.brand, signInPage(this.site, form, target, given));
  }

  /** Null for an invalid request. The page after the sign-in says what is wrong with it. */
  private async targetOf(returnTo: string): Promise<AuthorizationTarget | null> {
    if (!returnTo.includes('?')) return null;
    return this.authorizations.targetOf(queryOf(returnTo)).catch(nullForProblem);
  }
}

const returnPath = (given: unknown): string =>
  typeof given === 'string' && RETURN_TO.test(given) ? given : DEFAULT_RETURN;

interface GivenSignIn {
  returnTo: string;
  /** Shown again after a wrong password. */
  name: string;
  isWrong: boolean;
}

/** `target`: the application that sent the member here; null without one. */
function signInPage(
  site: AuthorizationSite,
  form: string,
  target: AuthorizationTarget | null,
  { returnTo, name, isWrong }: GivenSignIn,
): BrowserPage {
  const { memberTexts: texts, brandName: owner, forgottenPasswordUrl } = site.brand;
  const action = site.url(SIGN_IN);
  const hidden = html`<input type="hidden" name="form" value="${form}" />
    <input type="hidden" name="return_to" value="${returnTo}" />`;
  return {
    title: filled(texts.signInTitle, { owner }),
    leadsAway: target !== null,
    status: isWrong ? 403 : 200,
    body: html`${target && html`<p>${filled(texts.signInReason, { application: target.client.name, owner })}</p>`}
      ${isWrong && html`<p class="note" role="alert">${texts.wrongSignIn}</p>`}
      <form method="post" action="${action}">
        ${hidden}
        <label for="name">${texts.name}</label>
        <input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" required />
        <label for="password">${texts.password}</label>
        <input id="password" name="password" type="password" autocomplete="current-password" required />
        <p>${link(forgottenPasswordUrl, texts.forgottenPassword)}</p>
        <p class="buttons">
          <button class="main">${texts.signIn}</button>
          ${target && html`<button form="decline" name="decision" value="decline">${texts.cancel}</button>`}
        </p>
      </form>
      <form method="post" action="${action}" id="decline">${hidden}</form>`,
  };
}

const failuresPage = (
  { brand: { memberTexts: texts } }: AuthorizationSite,
  count: number,
  next: string,
): BrowserPage => ({
  title: texts.signedIn,
  body: html`<p class="note" role="status">${filled(texts.failures, { count })}</p>
    <p>${link(next, texts.goOn)}</p>`,
});

function signOutPage(site: AuthorizationSite, form: string, account: string): BrowserPage {
  const { memberTexts: texts } = site.brand;
  return {
    title: texts.signOut,
    body: html`<p>${filled(texts.account, { account })}</p>
      <form method="post" action="${site.url(SIGN_OUT)}">
        <input type="hidden" name="form" value="${form}" />
        <p class="buttons"><button class="main">${texts.signOut}</button></p>
      </form>`,
  };
}

const signedOutPage = ({ brand: { memberTexts: texts, brandName: owner } }: AuthorizationSite): BrowserPage => ({
  title: texts.signedOutTitle,
  body: html`<p>${filled(texts.signedOut, { owner })}</p>`,
});
