import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { OAuthRequest } from '../auth/client-authentication/client-authentication.js';
import type { TokenEvents } from '../auth/tokens/token.service.js';
import {
  logServerError,
  oauthCodeOf,
  parserProblem,
  problemOf,
  sendOAuthError,
  sendProblem,
  statusOf,
} from '../http/error-response.js';
import { type HttpResponse, isProbe } from '../http/exchange.js';
import { OAuthError } from '../http/oauth-error.js';
import { isOAuthRequest, oauthRoute, pathOf } from '../http/oauth-route.js';
import type { Brand } from '../options/brand-options.js';
import { sendErrorPage, wantsPage } from '../http/pages/page.js';
import { notFound, Problem, standardProblem } from '../http/problem.js';
import { unsupportedMediaType } from './request-bodies.js';

/** Answers errors outside Usher's routes: unknown paths and methods, and bodies that cannot be read. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  /**
   * `routes` has the methods of each path, because Fastify itself answers 404 instead of 405. `tokens` is told of each OAuth
   * request that is rejected with a 4xx.
   */
  constructor(
    private readonly brand: Brand,
    private readonly routes: Route[],
    private readonly tokens: TokenEvents | null,
    private readonly guides: string | null,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest(), http.getResponse());
  }

  answer(error: unknown, request: OAuthRequest, response: HttpResponse): void {
    const problem = this.problemOf(error, request);
    // The checks of a probe log their own failures.
    if (problem.getStatus() >= 500 && !isProbe(request)) logServerError(request, error);
    if (wantsPage(request)) sendErrorPage(response, this.brand, problem);
    else if (isOAuthRequest(request)) this.respondOAuth(request, response, error, problem);
    else sendProblem(response, problem, this.guides);
  }

  private respondOAuth(request: OAuthRequest, response: HttpResponse, error: unknown, problem: Problem): void {
    const code = oauthCodeOf(error, problem);
    if (problem.getStatus() < 500 && oauthRoute(request)) this.tokens?.refused(request, code);
    sendOAuthError(response, code, problem, this.guides);
  }

  private problemOf(error: unknown, request: OAuthRequest): Problem {
    if (error instanceof Problem || error instanceof OAuthError) return problemOf(error);
    if (statusOf(error) === 404) return this.unknownRoute(request.method, pathOf(request.url));
    return statusOf(error) === 415 ? unsupportedMediaType(request) : parserProblem(error);
  }

  private isSandbox(): boolean {
    return this.routes.some(({ url }) => url.startsWith('/sandbox/'));
  }

  private unknownRoute(method: string, path: string): Problem {
    const allowed = methodsOf(this.routes, path);
    if (allowed.length === 0) return notFound(unknownPath(this.isSandbox() ? '' : path));
    // The path differs from that of the route only by the slash at its end.
    if (allowed.includes(method)) return notFound('this path does not exist; leave out the slash at its end');
    const detail = `${method} is not allowed here; use ${allowed.join(' or ')}`;
    return standardProblem(405, detail).with({ Allow: allowed.join(', ') });
  }
}

export const unknownPath = (path: string): string =>
  `this path does not exist${path.startsWith('/sandbox/') ? '; paths below /sandbox exist only in a sandbox' : ''}`;

interface Route {
  method: string;
  url: string;
  pattern: RegExp;
}

const DECORATOR = 'usherRoutes';

/** Records every route that is added from now on; {@link routesOf} returns them. */
export function recordRoutes(instance: FastifyInstance): Route[] {
  const routes: Route[] = [];
  instance.decorate(DECORATOR, routes);
  instance.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(
      `^${url
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:[^/]+/g, '[^/]+')
        .replace(/\*/g, '.*')}/?$`,
    );
    for (const one of [method].flat()) routes.push({ method: one, url, pattern });
  });
  return routes;
}

export const routesOf = (instance: FastifyInstance): Route[] => instance.getDecorator<Route[]>(DECORATOR);

function methodsOf(routes: Route[], path: string): string[] {
  return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}
