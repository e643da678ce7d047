import { Get, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { isSealed, seal } from '../../../http/pages/form-token.js';
import { Problem } from '../../../http/problem.js';
import { OperatorSignIn } from '../../../operators/operator-sign-in.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import type { Actor } from '../../../values/actor.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { FORM_FIELD, formFields } from '../frame/form.js';
import { sendConsolePage, sendPageBeforeSignIn, SIGN_IN_PATH } from '../frame/frame.js';
import { sentence } from '../frame/parts.js';
import { type SignedIn, signedInOf } from '../frame/signed-in.js';
import { BrowserSessions } from './browser-sessions.js';
import { passwordPage, signInPage } from './sign-in-page.js';

/** The pages that a sign-in may lead to. Anything else would be an open redirector. */
const RETURN_TO = /^\/ops([/?][\x21-\x5b\x5d-\x7e]*)?$/;
const FORM_AGE_MS = 3_600_000;

/** Signing in and out, and the operator's own password. */
@ConsoleRoutes('ops')
export class SignInController {
  constructor(
    private readonly signIns: OperatorSignIn,
    private readonly operators: OperatorsService,
    private readonly sessions: BrowserSessions,
  ) {}

  @Get('sign-in')
  show(@Query('return_to') given: unknown, @Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const returnTo = returnPath(given);
    if (signedInOf(request)) return void reply.redirect(returnTo, 303);
    this.sendSignIn(request, reply, { returnTo, name: '', fault: null, status: 200 });
  }

  @Post('sign-in')
  @RouteConfig(FORM_ROUTE)
  async signIn(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const fields = (request.body ?? {}) as Record<string, unknown>;
    const browser = this.sessions.formToken(request);
    const returnTo = returnPath(fields.return_to);
    const [name, password] = [textOf(fields.name), textOf(fields.password)];
    const isValid = browser !== null && isSealed(browser, SIGN_IN_PATH, fields[FORM_FIELD], FORM_AGE_MS);
    if (!isValid) {
      const fault = 'This form is no longer valid. Sign in again; your browser must accept cookies of this server.';
      return this.sendSignIn(request, reply, { returnTo, name, fault, status: 403 });
    }
    const token = await this.signIns.signIn({ name, password }, request);
    if (token === null) {
      const fault = 'The name or the password is wrong.';
      return this.sendSignIn(request, reply, { returnTo, name, fault, status: 403 });
    }
    await this.sessions.begin(request, reply, token);
    void reply.redirect(returnTo, 303);
  }

  @Post('sign-out')
  @RouteConfig(FORM_ROUTE)
  async signOut(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    formFields(request);
    await this.sessions.end(request, reply);
    void reply.redirect(SIGN_IN_PATH, 303);
  }

  @Get('password')
  showPassword(@Query('changed') changed: unknown, @Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    this.sendPassword(request, reply, { isChanged: changed === 'yes', refusal: null });
  }

  /** Asks for the current password, so that somebody else at an open browser cannot take the account over. */
  @Post('password')
  @RouteConfig(FORM_ROUTE)
  async setPassword(
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { current = '', password = '' } = formFields(request);
    const { name } = signedInOf(request) as SignedIn;
    try {
      await this.operators.get(name);
      if (!(await this.signIns.confirm({ name, password: current }, request)))
        throw new Problem(403, 'Forbidden', 'the current password is wrong');
      await this.operators.setPassword(name, password, actor);
      const token = await this.signIns.signIn({ name, password }, request);
      if (token !== null) await this.sessions.begin(request, reply, token);
      void reply.redirect('/ops/password?changed=yes', 303);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.sendPassword(request, reply, { isChanged: false, refusal: error });
    }
  }

  private sendSignIn(
    request: FastifyRequest,
    reply: FastifyReply,
    { status, ...view }: { returnTo: string; name: string; fault: string | null; status: number },
  ): void {
    const browser = this.sessions.formToken(request) ?? this.sessions.newFormToken(request, reply);
    const body = signInPage({ ...view, form: seal(browser, SIGN_IN_PATH) });
    sendPageBeforeSignIn(reply, { title: 'Sign in', body }, status);
  }

  private sendPassword(
    request: FastifyRequest,
    reply: FastifyReply,
    { isChanged, refusal }: { isChanged: boolean; refusal: Problem | null },
  ): void {
    const { name } = signedInOf(request) as SignedIn;
    const isFirst = this.operators.isFirst(name);
    const body = passwordPage(request, { isFirst, isChanged, fault: refusal && sentence(refusal.detail) });
    sendConsolePage(request, reply, { title: 'Your password', section: null, body }, refusal?.getStatus() ?? 200);
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const returnPath = (given: unknown): string => {
  const path = textOf(given);
  return RETURN_TO.test(path) && !path.startsWith(SIGN_IN_PATH) ? path : '/ops';
};
