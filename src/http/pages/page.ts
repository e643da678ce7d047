import { createHash } from 'node:crypto';
import { applyDecorators, Catch, Inject, SetMetadata, UseFilters } from '@nestjs/common';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Brand } from '../../options/brand-options.js';
import { ENGLISH, filled, type MemberTexts, type TextName } from '../../values/member-texts.js';
import { ProblemFilter } from '../error-response.js';
import { type HttpRequest, type HttpResponse, setHeaders } from '../exchange.js';
import { Html, html } from '../html.js';
import { FASTIFY_ROUTE_CONFIG, isAuthPath, NO_STORE, oauthRoute, pathOf } from '../oauth-route.js';
import { Problem } from '../problem.js';

/** Of the pages for browsers of resource owners and of the page with the API's documentation. */
const PLAIN_STYLE = `
:root{color-scheme:light dark;--line:#8884;--good:#2a8f4f;--bad:#cc3d3d;--soft:#8882}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;font:1rem/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .5rem}
header{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:baseline}
input{flex:1;min-width:0;font:inherit;padding:.5rem}button{font:inherit;padding:.5rem 1rem;cursor:pointer}
.note{border-left:4px solid var(--bad);padding:.5rem .8rem;background:var(--soft)}
`;

/** Of every page. A page of another site gets no reference to its window, except if it {@link BrowserPage.leadsAway}. */
export const ISOLATION_HEADERS = { 'Cross-Origin-Opener-Policy': 'same-origin', 'X-Content-Type-Options': 'nosniff' };

/** A style sheet within a page, and the source for `style-src` that permits exactly its bytes. */
export const inlineStyle = (style: string) => ({
  tag: new Html(`<style>${style}</style>`),
  source: `'sha256-${createHash('sha256').update(style).digest('base64')}'`,
});

/** The frame of every HTML document of Usher. `head`: its style, and what else its head contains. */
export const documentOf = (title: string, head: Html, content: Html, language = 'en') =>
  html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        ${head}
      </head>
      <body>
        ${content}
      </body>
    </html>`.text;

/**
 * How an address in a document begins: with `/`, or with `~` for the home of its site. The lookbehind is last, so that it is
 * tried only where such a character is.
 */
export const ADDRESS = /[/~](?<=\s(?:href|action|src)=".)/g;
export const ADDRESS_OF_SITE = /~(?<=\s(?:href|action|src)=".)/g;

const styleOf = (color: string) => `${PLAIN_STYLE}
html{border-top:.4rem solid ${color};background:Canvas;color:CanvasText}
body{max-width:34rem;padding:0 1rem;overflow-wrap:anywhere}
header{padding:1.2rem 0;font-size:1.1rem;font-weight:600}
header img{height:3.5rem;max-width:100%;object-fit:contain}
main h1{margin:0 0 .6rem}
label{display:block;margin:.9rem 0 .3rem}input{width:100%;border:1px solid #767676;border-radius:.4rem}
ul{padding-left:1.2rem}li{margin:.3rem 0}
p.buttons{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.4rem 0}
button{min-height:2.75rem;border-radius:.4rem;border:1px solid var(--line)}
button.main{background:${color};border-color:${color};color:#fff}
section{border-top:1px solid var(--line);margin:1rem 0;padding-top:.2rem}
section h2{margin:.6rem 0}section p{margin:.6rem 0}
footer{display:flex;gap:1.2rem;padding:1.2rem 0;font-size:.9rem}
.dim{opacity:.75;font-size:.9rem}
@media(min-width:40rem){main{border:1px solid var(--line);border-radius:.8rem;padding:1.6rem 1.8rem .6rem}}
@media(prefers-color-scheme:dark){header img{padding:.4rem;border-radius:.4rem;background:#fff}}
`;

/** A page for browsers of resource owners. It needs no script. */
export interface BrowserPage {
  title: string;
  body: Html;
  /**
   * Whether a form of this page leads to a client's redirect URI. Chromium applies `form-action` to every redirect after a form,
   * also to those of the client, which are not known. So such a page has none.
   */
  leadsAway?: boolean;
  /** Default 200. */
  status?: number;
}

export function sendPage(response: HttpResponse, brand: Brand, page: BrowserPage) {
  const { brandName, brandLogo, helpUrl, privacyUrl, memberTexts } = brand;
  const { title, body, leadsAway = false, status = 200 } = page;
  const style = inlineStyle(styleOf(brand.brandColor));
  setHeaders(response, {
    ...NO_STORE,
    ...ISOLATION_HEADERS,
    // An application may open it in a window of its own. Its redirect URI then reports to the page that opened the window.
    ...(leadsAway && { 'Cross-Origin-Opener-Policy': 'unsafe-none' }),
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy':
      `default-src 'none'; style-src ${style.source}; base-uri 'none'; frame-ancestors 'none'` +
      `${leadsAway ? '' : "; form-action 'self'"}${brandLogo === null ? '' : '; img-src data:'}`,
    'X-Frame-Options': 'DENY',
    // With no-referrer, a form would send Origin: null, which form-tokens.ts refuses.
    'Referrer-Policy': 'same-origin',
  });
  response.status(status);
  const content = html`<header>
      ${brandLogo === null ? brandName : html`<img src="${brandLogo}" alt="${brandName}" />`}
    </header>
    <main>
      <h1>${title}</h1>
      ${body}
    </main>
    <footer>${link(helpUrl, memberTexts.help)} ${link(privacyUrl, memberTexts.privacy)}</footer>`;
  response.send(documentOf(`${title} · ${brandName}`, style.tag, content, memberTexts.language));
}

export const link = (url: string | null | undefined, text: string) => url && html`<a href="${url}">${text}</a>`;

/** 303, so that the browser follows with GET and never repeats a form at the other address (RFC 9700 section 4.12). */
export function seeOther(response: HttpResponse, location: string) {
  setHeaders(response, { ...NO_STORE, Location: location, 'Referrer-Policy': 'no-referrer' });
  response.status(303);
  response.send('');
}

/** An error in the language of the pages; in English for the documentation. */
export class PageProblem extends Problem {
  constructor(
    status: number,
    readonly text: TextName,
    readonly values: Record<string, number> = {},
  ) {
    super(status, ENGLISH.faultTitle, filled(ENGLISH[text], values));
  }
}

export function sendErrorPage(response: HttpResponse, brand: Brand, problem: Problem) {
  const { 'WWW-Authenticate': _, ...headers } = problem.headers;
  setHeaders(response, headers);
  const { memberTexts } = brand;
  const body = html`<p class="note" role="alert">${errorText(memberTexts, problem)}</p>`;
  sendPage(response, brand, { title: memberTexts.faultTitle, body, status: problem.getStatus() });
}

/** Apart from a {@link PageProblem} and from errors of this server, errors are for developers and stay English. */
function errorText(texts: MemberTexts, problem: Problem) {
  if (problem instanceof PageProblem) return filled(texts[problem.text], problem.values);
  const status = problem.getStatus();
  return status === 429 || status >= 500 ? texts.busy : problem.detail;
}

@Catch()
class PageFilter extends ProblemFilter {
  constructor(@Inject(USHER_OPTIONS) private readonly options: ResolvedOptions) {
    super(options.guidesUrl);
  }

  protected override send(response: HttpResponse, problem: Problem): void {
    sendErrorPage(response, this.options, problem);
  }
}

/** Marks a route for browsers: its body is a form, and its errors are pages. */
export const PageRoute = (): MethodDecorator =>
  applyDecorators(UseFilters(PageFilter), SetMetadata(FASTIFY_ROUTE_CONFIG, { form: true, page: true }));

/** Whether an error outside a route goes to a browser: at a page, or at another path below /auth that a browser opens. */
export function wantsPage(request: HttpRequest) {
  const { routeOptions } = request as { routeOptions?: { config?: { page?: boolean } } };
  if (routeOptions?.config?.page) return true;
  return oauthRoute(request) === null && isAuthPath(pathOf(request.url)) && acceptsPage(request);
}

/** Whether a browser opens the address itself. */
export const acceptsPage = ({ headers }: Pick<HttpRequest, 'headers'>) => (headers.accept ?? '').includes('text/html');
