import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { ISOLATION_HEADERS, PageFrame } from '../../../http/pages/page-frame.js';
import { postForm, type View } from '../../../http/pages/site.js';
import { type SignedIn, signedInOf } from './signed-in.js';
import { CONSOLE_STYLE } from './style.js';

/** Of every response at and below /ops. */
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
export const SCRIPT_PATH = '/ops/console.js';

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 20 20%22 fill=%22none%22 stroke=%22%236a6fdc%22 stroke-width=%223%22%3E%3Cpath d=%22M4 3v7a6 6 0 0 0 12 0V3%22/%3E%3C/svg%3E';

const ICON_LINK = html`<link rel="icon" href="${ICON}" />`;
const FRAME = new PageFrame(
  CONSOLE_STYLE,
  html`${ICON_LINK}
    <script src="${SCRIPT_PATH}" defer></script>`,
);
/** Without the script, which only an operator may read. */
const FRAME_BEFORE_SIGN_IN = new PageFrame(CONSOLE_STYLE, ICON_LINK);

/** Only this page's own style, the console's script and no other, whatever a receiver's response contains. */
const PAGE_HEADERS = {
  ...OPS_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    `default-src 'none'; style-src ${FRAME.styleSource}; script-src 'self'; connect-src 'self'; img-src data:; ` +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};

const SECTIONS = {
  overview: 'Overview',
  notifications: 'Notifications',
  receivers: 'Receivers',
  clients: 'Clients',
  members: 'Members',
  audit: 'Audit',
  health: 'Health',
  queues: 'Queues',
  operators: 'Operators',
};

/** The links to all sections; the current one is marked. */
export const sectionLinks = (current?: string): Html =>
  html`<ul>
    ${Object.entries(SECTIONS).map(([section, name]) => {
      const path = section === 'overview' ? '/ops' : `/ops/${section}`;
      return html`<li>
        <a href="${path}" ${section === current && html`aria-current="page"`}>${name}</a>
      </li>`;
    })}
  </ul>`;

/** The mark and the name, which lead to the overview. */
export const brand = html`<a class="u-brand" href="/ops">
  <svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.4">
    <path d="M4 3v7a6 6 0 0 0 12 0V3" stroke-linecap="round" />
    <circle cx="10" cy="9" r="1.6" fill="currentColor" stroke="none" />
  </svg>
  Usher
</a>`;

/** Sends a page with its headers. The signed-in operator is known from the request. */
export function sendConsolePage(request: FastifyRequest, reply: FastifyReply, page: View): void {
  const operator = signedInOf(request);
  const frame = operator ? FRAME : FRAME_BEFORE_SIGN_IN;
  const content = operator ? shell(request, operator, page) : pageBeforeSignIn(page);
  void reply
    .status(page.status ?? 200)
    .headers(PAGE_HEADERS)
    .send(frame.document(`${page.title} · Usher`, content));
}

/** A page without navigation. */
const pageBeforeSignIn = ({ title, body }: View): Html =>
  html`<main class="u-bare">
    ${brand}
    <div class="card">
      <h1>${title}</h1>
      ${body}
    </div>
  </main>`;

const LIVE = html`<p class="live" hidden>
  <span role="status">Updates every 10 s</span> <button type="button" class="quiet">Pause</button>
</p>`;

function shell(request: FastifyRequest, operator: SignedIn, { title, section, body, query = '', isLive }: View) {
  return html`<div class="u-frame">
    <a class="skip" href="#content">Skip to the content</a>
    <header class="u-top">
      <div class="u-start">${brand} <span class="u-env ${operator.environment}">${operator.environment}</span></div>
      <form class="u-search" role="search" action="/ops" method="get">
        <input
          type="search"
          name="q"
          value="${query}"
          placeholder="Order key, client or notification id"
          aria-label="Search for an order, a client or a notification"
        />
        <button>Search</button>
      </form>
      ${whoIsSignedIn(request, operator)}
      <button type="button" class="u-menu" popovertarget="sections">Menu</button>
    </header>
    <nav class="u-nav" id="sections" popover aria-label="Sections">${sectionLinks(section)}</nav>
    <main id="content" tabindex="-1">
      ${isLive && LIVE}
      <div class="body">
        <h1>${title}</h1>
        ${body}
      </div>
    </main>
  </div>`;
}

/** The name leads to the own password. A request with HTTP Basic has no session that could end. */
export function whoIsSignedIn(request: FastifyRequest, { name, role, session }: SignedIn): Html {
  return html`<div class="u-who">
    <a href="${PASSWORD_PATH}" title="Signed in as ${name}, role ${role}"
      >${name}${role === 'viewer' ? ' (viewer)' : ''}</a
    >
    ${session && postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
  </div>`;
}
