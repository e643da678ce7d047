import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { HttpRequest, HttpResponse } from '../../http/exchange.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { refused } from '../../http/pages/form-token.js';
import { PageRoute } from '../../http/pages/page-route.js';
import { seeOther, sendPage } from '../../http/pages/page.js';
import { AuthorizationSite, ownerActor } from './authorization-site.js';
import { ConnectedApplications } from './connected-applications.js';
import { connectionsPage } from './consent-page.js';

const PATH = '/auth/connections';

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
    const { forms, signOutUrl } = this.site;
    const owner = await this.site.currentOwner(request);
    if (!owner) return this.site.signIn(request, response, PATH);
    const body = connectionsPage({
      owner: owner.name,
      applications: await this.applications.list(owner.id),
      action: this.site.url(PATH),
      form: forms.seal(forms.browser(request.headers, response), purposeOf(owner.id)),
      signOutUrl: signOutUrl === null ? null : new URL(signOutUrl, this.site.issuer).href,
    });
    sendPage(response, 200, { title: 'Connected applications', body });
  }

  /** Withdraws the access of one application. Answers with a redirect, so that reloading the page repeats nothing. */
  @Post()
  @PageRoute()
  async withdraw(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    const { form, client_id: clientId } = (request.body ?? {}) as { form?: unknown; client_id?: unknown };
    const owner = await this.site.currentOwner(request);
    if (!owner || typeof clientId !== 'string') throw refused();
    this.site.forms.check(request.headers, purposeOf(owner.id), form);
    await this.applications.withdraw(owner.id, clientId, ownerActor(request, owner));
    seeOther(response, this.site.url(PATH));
  }
}
