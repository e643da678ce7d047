import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import { logServerError, problemOf } from '../../http/error-response.js';
import type { HttpRequest, HttpResponse } from '../../http/exchange.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { isSearchable } from '../../http/pages/fields.js';
import { formFields } from '../../http/pages/form.js';
import { refused } from '../../http/pages/form-tokens.js';
import { PageRoute, seeOther, sendPage } from '../../http/pages/page.js';
import type { ResourceOwner } from '../../values/resource-owner.js';
import {
  type Answered,
  AuthorizationResponses,
  Authorizations,
  type AuthorizationTarget,
  DECLINED,
} from './authorizations.js';
import { asksForSignIn, AuthorizationError, checkRequest, type Query, queryOf } from './authorization-request.js';
import { AuthorizationSite, ownerActor } from './authorization-site.js';
import { CONNECTIONS, connectionsPage, consentPage } from './consent-page.js';
import { ConnectedApplications } from './connected-applications.js';

interface Asked {
  query: Query;
  target: AuthorizationTarget;
  owner: ResourceOwner;
}

/** The authorisation endpoint (RFC 6749 §3.1) and its consent page. */
@Controller('auth')
@UsherRoutes()
export class AuthorizeController {
  constructor(
    private readonly site: AuthorizationSite,
    private readonly authorizations: Authorizations,
    private readonly responses: AuthorizationResponses,
  ) {}

  /**
   * The owner signs in first, even if the request is faulty. So a link to this server cannot lead to another site without an
   * action of the owner (RFC 9700 §4.11.2).
   */
  @Get('authorize')
  @PageRoute()
  async authorize(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const query = queryOf(request.originalUrl ?? request.url);
    const target = await this.authorizations.targetOf(query);
    const owner = await this.site.currentOwner(request);
    const again = asksForSignIn(query);
    if (!owner || again) return this.site.signIn(request, response, pathWithoutPrompt(query), again);
    try {
      await this.proceed(request, response, { query, target, owner });
    } catch (error) {
      const { code, description } = authorizationErrorOf(error, request);
      this.responses.send(response, target, { error: code, error_description: description });
    }
  }

  @Post('consent')
  @PageRoute()
  async consent(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const browser = this.site.forms.sender(request.headers);
    const owner = await this.site.currentOwner(request);
    const { form, decision } = formFields(request);
    if (!owner || form === undefined) throw refused();
    const answered = await this.authorizations.answer({
      form,
      browser,
      ownerId: owner.id,
      actor: ownerActor(request, owner),
      isAllowed: decision === 'allow',
      isTrusted: false,
    });
    if (!answered) throw refused();
    this.answer(response, answered);
  }

  /** Asks the owner, except for an application that the operator trusts. */
  private async proceed(http: HttpRequest, response: HttpResponse, { query, target, owner }: Asked): Promise<void> {
    const request = checkRequest(query, target.client);
    const browser = this.site.forms.cookie.ensure(http.headers, response);
    const form = await this.authorizations.ask(target, request, { ownerId: owner.id, browser });
    if (!target.isTrusted) {
      const otherAccountUrl = await this.site.signInUrl(http, pathWithoutPrompt(query), true);
      const page = consentPage(this.site, { target, account: owner.name, form, otherAccountUrl });
      return sendPage(response, this.site.brand, page);
    }
    // Checked again after the row is stored: either closing the account deletes the row, or this finds the account closed.
    const isStillSignedIn = (await this.site.currentOwner(http))?.id === owner.id;
    const decision = {
      form,
      browser,
      ownerId: owner.id,
      actor: ownerActor(http, owner),
      isAllowed: true,
      isTrusted: true,
    };
    const allowed = isStillSignedIn ? await this.authorizations.answer(decision) : null;
    if (!allowed) throw new AuthorizationError('access_denied', 'the account was closed or signed out');
    this.answer(response, allowed);
  }

  private answer(response: HttpResponse, answered: Answered): void {
    const { code } = answered;
    this.responses.send(response, answered, code === null ? DECLINED : { code });
  }
}

/** The same request without `prompt`, for the time after the sign-in. */
function pathWithoutPrompt(query: Query): string {
  const again = new URLSearchParams();
  for (const [name, values] of query) for (const value of values) again.append(name, value);
  again.delete('prompt');
  return `/auth/authorize?${again}`;
}

/** The cause of a fault goes only to the log. */
function authorizationErrorOf(error: unknown, request: HttpRequest): AuthorizationError {
  if (error instanceof AuthorizationError) return error;
  const problem = problemOf(error);
  if (problem.getStatus() === 429) return new AuthorizationError('temporarily_unavailable', problem.detail);
  logServerError(request, error);
  return problem.getStatus() === 503
    ? new AuthorizationError('temporarily_unavailable', 'the service is busy or starting; try again')
    : new AuthorizationError('server_error', 'an internal error occurred; try again later');
}

const purposeOf = (ownerId: string): string => `withdraw ${ownerId}`;

/** The page on which an owner sees the applications that they allowed, and withdraws access. */
@Controller('auth/connections')
@UsherRoutes()
export class ConnectionsController {
  constructor(
    private readonly site: AuthorizationSite,
    private readonly applications: ConnectedApplications,
  ) {}

  @Get()
  @PageRoute()
  async show(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const owner = await this.site.currentOwner(request);
    if (!owner) return this.site.signIn(request, response, CONNECTIONS);
    const page = connectionsPage(this.site, {
      account: owner.name,
      applications: await this.applications.list(owner.id),
      form: this.site.forms.seal(request.headers, response, purposeOf(owner.id)),
    });
    sendPage(response, this.site.brand, page);
  }

  /** Withdraws the access of one application. Answers with a redirect, so that reloading the page repeats nothing. */
  @Post()
  @PageRoute()
  async withdraw(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form, client_id: clientId } = formFields(request);
    const owner = await this.site.currentOwner(request);
    if (!owner || clientId === undefined || !isSearchable(clientId)) throw refused();
    this.site.forms.check(request.headers, purposeOf(owner.id), form);
    await this.applications.withdraw(owner.id, clientId, ownerActor(request, owner));
    seeOther(response, this.site.url(CONNECTIONS));
  }
}
