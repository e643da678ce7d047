import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { postForm, type Viewer, viewerOf } from '../../../http/pages/form.js';
import type { Environment } from '../../../values/identifier.js';
import type { View } from '../../../http/pages/site.js';
import { ADDRESS, ADDRESS_OF_SITE, documentOf, ISOLATION_HEADERS } from '../../../http/pages/page.js';
import { StaticAnswer } from '../../openapi/static-answer.js';

export const OPS_HEADERS = {
  ...ISOLATION_HEADERS,
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // With no-referrer, a form would send Origin: null, which operator-access.ts refuses.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

export const SIGN_IN_PATH = '/ops/sign-in';
export const SIGN_OUT_PATH = '/ops/sign-out';
export const PASSWORD_PATH = '/ops/password';
/** A refresh that a page makes by itself has this header. */
export const LIVE_HEADER = 'usher-live';

const KEPT = 'public, max-age=31536000, immutable';

/** A file of the console's pages, which everybody may read. Its address has its hash, so browsers ask for it once. */
function assetOf(path: string, type: string, text: string) {
  const address = `${path}?${hash('sha256', text, 'base64url').slice(0, 16)}`;
  let answer: Promise<StaticAnswer> | undefined;
  return {
    path,
    address,
    /** Only the exact address is cached: during an upgrade, a page of another version may ask for a different file. */
    async send(reply: FastifyReply) {
      answer ??= StaticAnswer.of(type, text);
      (await answer).send(reply, reply.request.url === address ? KEPT : undefined);
    },
  };
}

const readFrameFile = (name: string) => readFileSync(join(__dirname, name), 'utf8');

/** Of the console's pages and of the guides. */
export const CONSOLE_STYLE = readFrameFile('console.css');

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 20 20%22 fill=%22none%22 stroke=%22%236a6fdc%22 stroke-width=%223%22%3E%3Cpath d=%22M4 3v7a6 6 0 0 0 12 0V3%22/%3E%3C/svg%3E';

export const ICON_LINK = html`<link rel="icon" href="${ICON}" />`;

export const brandOf = (home: string, name: string) =>
  html`<a class="u-brand" href="${home}">
    <svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.4">
      <path d="M4 3v7a6 6 0 0 0 12 0V3" stroke-linecap="round" />
      <circle cx="10" cy="9" r="1.6" fill="currentColor" stroke="none" />
    </svg>
    ${name}
  </a>`;

interface Shell {
  brand: Html;
  /** Left out: it is not shown. */
  environment?: Environment;
  /** What the bar at the top has besides the name. */
  bar: Html;
  sections: { address: string; title: string; isCurrent: boolean }[];
  content: Html;
}

export const shellOf = ({ brand, environment, bar, sections, content }: Shell) =>
  html`<div class="u-frame">
    <a class="skip" href="#content">Skip to the content</a>
    <header class="u-top">
      <div class="u-start">
        ${brand} ${environment && html`<span class="u-env ${environment}">${environment}</span>`}
      </div>
      ${bar}
      <button type="button" class="u-menu" popovertarget="sections">Menu</button>
    </header>
    <nav class="u-nav" id="sections" popover aria-label="Sections">
      <ul>
        ${sections.map(
          ({ address, title, isCurrent }) =>
            html`<li><a href="${address}" ${isCurrent && html`aria-current="page"`}>${title}</a></li>`,
        )}
      </ul>
    </nav>
    <main id="content" tabindex="-1">${content}</main>
  </div>`;

/** Every page works without it. */
const SCRIPT = readFileSync(require.resolve('idiomorph/dist/idiomorph.min.js'), 'utf8') + readFrameFile('console.js');

interface SiteOptions {
  /** Also where its files are. */
  home: string;
  /** The titles of its sections. The first one is the overview. */
  sections: string[];
  /** What the bar at the top has besides the name. */
  bar: (viewer: Viewer, request: FastifyRequest, page: View) => Html;
  /** Where its overview is. */
  overview?: string;
  /** What the pages call the service. */
  name?: string;
  /** The path of the public address, which a proxy removes. */
  base?: string;
}

export type Site = ReturnType<typeof siteOf>;

/** The frame of the pages of a site: the console, or the portal of clients. */
export function siteOf({ home, sections, bar, overview = home, name = 'Usher', base = '' }: SiteOptions) {
  const style = assetOf(`${home}/console.css`, 'text/css', CONSOLE_STYLE);
  const script = assetOf(`${home}/console.js`, 'text/javascript', SCRIPT);
  /** The address that browsers need. `path` begins with `/`, or with `~` for the home of the site. */
  const address = (path: string) => base + path.replace(/^~/, home);
  /** Completes the addresses in a document. */
  const located = (document: string) => document.replace(base ? ADDRESS : ADDRESS_OF_SITE, address);
  /** Before the sign-in there is no script, and no frame. */
  function document(request: FastifyRequest, page: View) {
    const viewer = viewerOf(request);
    const brand = brandOf(home, name);
    const head = html`${ICON_LINK}
      <link rel="stylesheet" href="${style.address}" />
      ${viewer && html`<script src="${script.address}" defer></script>`}`;
    const content = viewer
      ? shellOf({
          brand,
          environment: viewer.environment,
          bar: bar(viewer, request, page),
          sections: sections.map((title, index) => {
            const section = title.toLowerCase();
            return {
              address: index === 0 ? overview : `${home}/${section}`,
              title,
              isCurrent: section === page.section,
            };
          }),
          content: contentOf(page),
        })
      : pageBeforeSignIn(brand, page);
    return located(documentOf(`${page.title} · ${name}`, head, content));
  }
  return { home, assets: [style, script], address, located, document };
}

/** Allows only the console's style, its script and the queues' pages, whatever a receiver's response contains. */
const PAGE_HEADERS = {
  ...OPS_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};

export function sendFramed(site: Site, request: FastifyRequest, reply: FastifyReply, page: View) {
  void reply.status(page.status ?? 200).headers(PAGE_HEADERS);
  if (viewerOf(request) && LIVE_HEADER in request.headers) return sendBody(site, request, reply, page);
  void reply.send(site.document(request, page));
}

/** What differs in each response: the texts of times, which the script writes, and the tokens of forms. */
const VOLATILE = /(?<=<time[^>]*>).*?(?=<\/time>)|(?<=name="form" value=")[^"]*/gs;

/**
 * Answers a refresh with the body alone, or 304 if nothing has changed. Unlike a whole page it is compressed: other
 * sites cannot send its header, so they cannot measure how their text compresses together with a secret (BREACH).
 */
function sendBody(site: Site, { headers }: FastifyRequest, reply: FastifyReply, page: View) {
  const text = site.located(bodyOf(page).text);
  const etag = `W/"${hash('sha256', text.replace(VOLATILE, ''), 'base64url')}"`;
  void reply.header('ETag', etag);
  if (headers['if-none-match'] === etag) return void reply.status(304).send();
  gzip(text, (_, zipped) => void reply.header('Content-Encoding', 'gzip').send(zipped));
}

const bodyOf = ({ title, body }: View) =>
  html`<div class="body">
    <h1>${title}</h1>
    ${body}
  </div>`;

const contentOf = (page: View) =>
  html`${
    page.isLive &&
    html`<p class="live" hidden>
      <span role="status">Updates every 10 s</span> <button type="button" class="quiet">Pause</button>
    </p>`
  }
  ${bodyOf(page)}`;

const pageBeforeSignIn = (brand: Html, { title, body }: View) =>
  html`<main class="u-bare">
    ${brand}
    <div class="card">
      <h1>${title}</h1>
      ${body}
    </div>
  </main>`;

/** The operator's name links to the page of the password. A request with HTTP Basic has no session to sign out of. */
export const OPS_SITE = siteOf({
  home: '/ops',
  sections: ['Overview', 'Notifications', 'Receivers', 'Clients', 'Members', 'Audit', 'Health', 'Queues', 'Operators'],
  bar: ({ name, session, mayChange }, request, { query = '' }) =>
    html`<form class="u-search" role="search" action="/ops" method="get">
        <input
          type="search"
          name="q"
          value="${query}"
          placeholder="Order, booking, client, host, member, id"
          aria-label="Search for an order, a booking, a client, a receiver, a member, an operator or a notification"
        />
        <button>Search</button>
      </form>
      <div class="u-who">
        <a href="${PASSWORD_PATH}" title="Signed in as ${name}, role ${mayChange ? 'operator' : 'viewer'}"
          >${name}${!mayChange && ' (viewer)'}</a
        >
        ${session && postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
      </div>`,
});
