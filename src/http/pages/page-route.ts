import {
  applyDecorators,
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  SetMetadata,
  UseFilters,
} from '@nestjs/common';
import { logServerError, problemOf } from '../error-response.js';
import type { HttpRequest, HttpResponse } from '../exchange.js';
import { FASTIFY_ROUTE_CONFIG, isAuthPath, oauthRoute, pathOf } from '../oauth-route.js';
import { sendErrorPage } from './page.js';

/** Answers the errors of a page as a page. */
@Catch()
export class PageFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const problem = problemOf(error);
    if (problem.getStatus() >= 500) logServerError(http.getRequest<HttpRequest>(), error);
    sendErrorPage(http.getResponse<HttpResponse>(), problem);
  }
}

/** Marks a route for browsers: its body is a form, and its errors are pages. */
export const PageRoute = (): MethodDecorator =>
  applyDecorators(UseFilters(PageFilter), SetMetadata(FASTIFY_ROUTE_CONFIG, { form: true, page: true }));

/** Whether an error before or beside a route goes to a browser: at a page, or at any other path that it opens below /auth. */
export function wantsPage(request: HttpRequest): boolean {
  const { routeOptions } = request as { routeOptions?: { config?: { page?: boolean } } };
  if (routeOptions?.config?.page) return true;
  const { accept = '' } = request.headers;
  return oauthRoute(request) === null && isAuthPath(pathOf(request.url)) && accept.includes('text/html');
}
