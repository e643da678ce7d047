import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { HttpResponse } from '../../http/exchange.js';
import { OAUTH_ROUTE, type OAuthRouteOptions } from '../../http/oauth-route.js';
import { ClientAuthentication, type OAuthRequest } from './client-authentication.js';

/**
 * Requires a client's id and secret by HTTP Basic (specification 5.2), with limits against guessing, and stores the
 * client on the request, for `CurrentClient`. It guards the OAuth routes and any route of an application. Outside the
 * OAuth routes its errors are a `Problem`: 400, 401 with a challenge, or 429 with Retry-After.
 */
@Injectable()
export class BasicGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly clients: ClientAuthentication,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<OAuthRequest>(), http.getResponse<HttpResponse>()];
    const route = this.reflector.get<OAuthRouteOptions | undefined>(OAUTH_ROUTE, context.getHandler());
    if (route) await this.clients.authenticate(request, response, route);
    else await this.clients.authenticateElsewhere(request, response);
    return true;
  }
}
