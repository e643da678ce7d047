import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { postForm, type Viewer, viewerOf } from '../../../http/pages/form.js';
import type { Environment } from '../../../values/identifier.js';
import type { View } from '../../../http/pages/site.js';
import { ADDRESS, ADDRESS_OF_SITE, documentOf, ISOLATION_HEADERS } from '../../../http/pages/page-frame.js';
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
class Asset {
  readonly address: string;
  private answer?: Promise<StaticAnswer>;

  constructor(
    readonly path: string,
    private readonly type: string,
    private readonly text: string,
  ) {
    this.address = `${path}?${hash('sha256', text, 'base64url').slice(0, 16)}`;
  }

  /** Only the exact address is cached: during an upgrade, a page of another version may ask for a different file. */
  async send(reply: FastifyReply): Promise<void> {
    this.answer ??= StaticAnswer.of(this.type, this.text);
    (await this.answer).send(reply, reply.request.url === this.address ? KEPT : undefined);
  }
}

const readFrameFile = (name: string): string => readFileSync(join(__dirname, name), 'utf8');

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

/** The frame of the pages of a site: the console, or the portal of clients. */
export class Site {
  private readonly style: Asset;
  private readonly script: Asset;

  constructor(
    /** Also where its files are. */
    readonly home: string,
    /** The titles of its sections. The first one is the overview. */
    private readonly sections: string[],
    /** What the bar at the top has besides the name. */
    private readonly bar: (viewer: Viewer, request: FastifyRequest, page: View) => Html,
    /** Where its overview is. */
    private readonly overview = home,
    /** What the pages call the service. */
    private readonly name = 'Usher',
    /** The path of the public address, which a proxy removes. */
    private readonly base = '',
  ) {
    this.style = new Asset(`${home}/console.css`, 'text/css', CONSOLE_STYLE);
    this.script = new Asset(`${home}/console.js`, 'text/javascript', SCRIPT);
  }

  get assets(): Asset[] {
    return [this.style, this.script];
  }

  /** The address that browsers need. `path` begins with `/`, or with `~` for the home of the site. */
  address(path: string): string {
    return this.base + path.replace(/^~/, this.home);
  }

  /** Completes the addresses in a document. */
  located(document: string): string {
    return document.replace(this.base ? ADDRESS : ADDRESS_OF_SITE, (start) => this.address(start));
  }

  /** Before the sign-in there is no script, and no frame. */
  document(request: FastifyRequest, page: View): string {
    const viewer = viewerOf(request);
    const brand = brandOf(this.home, this.name);
    const head = html`${ICON_LINK}
      <link rel="stylesheet" href="${this.style.address}" />
      ${viewer && html`<script src="${this.script.address}" defer></script>`}`;
    const content = viewer
      ? shellOf({
          brand,
          environment: viewer.environment,
          bar: this.bar(viewer, request, page),
          sections: this.sections.map((title, index) => {
            const section = title.toLowerCase();
            const address = index === 0 ? this.overview : `${this.home}/${section}`;
            return { address, title, isCurrent: section === page.section };
          }),
          content: contentOf(page),
        })
      : pageBeforeSignIn(brand, page);
    return this.located(documentOf(`${page.title} · ${this.name}`, head, content));
  }
}

/** Allows only the console's style, its script and the queues' pages, whatever a receiver's response contains. */
const PAGE_HEADERS = {
  ...OPS_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};

export function sendFramed(site: Site, request: FastifyRequest, reply: FastifyReply, page: View): void {
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
function sendBody(site: Site, { headers }: FastifyRequest, reply: FastifyReply, page: View): void {
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

const SECTIONS = [
  'Overview',
  'Notifications',
  'Receivers',
  'Clients',
  'Members',
  'Audit',
  'Health',
  'Queues',
  'Operators',
];

/** The operator's name links to the page of the password. A request with HTTP Basic has no session to sign out of. */
export const OPS_SITE = new Site(
  '/ops',
  SECTIONS,
  ({ name, session, mayChange }, request, { query = '' }) =>
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
);
