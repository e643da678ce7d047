import { applyDecorators, Catch, SetMetadata, UseFilters } from '@nestjs/common';
import { ProblemFilter } from '../error-response.js';
import { type HttpRequest, type HttpResponse, setHeaders } from '../exchange.js';
import { type Html, html } from '../html.js';
import { FASTIFY_ROUTE_CONFIG, isAuthPath, NO_STORE, oauthRoute, pathOf } from '../oauth-route.js';
import type { Problem } from '../problem.js';
import { documentOf, inlineStyle, ISOLATION_HEADERS, PLAIN_STYLE } from './page-frame.js';

const STYLE = inlineStyle(`${PLAIN_STYLE}
body{max-width:34rem;padding:1.5rem 1rem;overflow-wrap:anywhere}
main h1{margin:1.2rem 0 .6rem}
label{display:block;margin:.9rem 0 .3rem}input{width:100%}
ul{padding-left:1.2rem}li{margin:.3rem 0}
p.buttons{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.4rem 0}
button{min-height:2.75rem;border-radius:.4rem;border:1px solid var(--line)}
button.main{background:#1f6f3d;border-color:#1f6f3d;color:#fff}
section{border-top:1px solid var(--line);padding:.4rem 0}
.dim{opacity:.75}
`);

/** A page for browsers of resource owners. It needs no script. */
export interface BrowserPage {
  title: string;
  body: Html;
  /**
   * Where a form of this page may lead besides this server. Chromium applies `form-action` also to the redirects that follow a
   * form, so a page before the client's redirect URI names its origin.
   */
  formTarget?: string | null;
}

export function sendPage(
  response: HttpResponse,
  status: number,
  { title, body, formTarget = null }: BrowserPage,
): void {
  setHeaders(response, {
    ...NO_STORE,
    ...ISOLATION_HEADERS,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy':
      `default-src 'none'; style-src ${STYLE.source}; base-uri 'none'; frame-ancestors 'none'; ` +
      `form-action 'self'${formTarget === null ? '' : ` ${formTarget}`}`,
    'X-Frame-Options': 'DENY',
    // With no-referrer, a form would send Origin: null, which form-token.ts refuses.
    'Referrer-Policy': 'same-origin',
  });
  response.status(status);
  response.send(documentOf(`${title} · Usher`, STYLE.tag, html`<main>${body}</main>`));
}

/** 303, so that the browser follows with GET and never repeats a form at the other address (RFC 9700 section 4.12). */
export function seeOther(response: HttpResponse, location: string): void {
  setHeaders(response, { ...NO_STORE, Location: location, 'Referrer-Policy': 'no-referrer' });
  response.status(303);
  response.send('');
}

/** An error for a person: what is wrong, and what to do. */
export function sendErrorPage(response: HttpResponse, problem: Problem): void {
  const { 'WWW-Authenticate': _, ...headers } = problem.headers;
  setHeaders(response, headers);
  const body = html`<h1>${problem.title}</h1>
    <p class="note" role="alert">${problem.detail}</p>`;
  sendPage(response, problem.getStatus(), { title: problem.title, body });
}

/** Answers the errors of a page as a page. */
@Catch()
class PageFilter extends ProblemFilter {
  protected override readonly send = sendErrorPage;
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
