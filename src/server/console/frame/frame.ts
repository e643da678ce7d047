import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpRequest, setActor } from '../../../http/exchange.js';
import { type Html, html } from '../../../http/html.js';
import { postForm, setViewer, type Viewer, viewerOf } from '../../../http/pages/form.js';
import type { OperatorRole } from '../../../operators/operator.entity.js';
import type { Environment } from '../../../values/identifier.js';
import type { View } from '../../../http/pages/site.js';
import { documentOf, ISOLATION_HEADERS } from '../../../http/pages/page-frame.js';
import { StaticAnswer } from '../../openapi/static-answer.js';
import { brandOf, CONSOLE_STYLE, ICON_LINK, readFrameFile, shellOf } from './shell.js';

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
/** A refresh that a page makes by itself has this header. */
export const LIVE_HEADER = 'usher-live';

/** Who makes a request at or below /ops. */
export interface SignedIn extends Viewer {
  role: OperatorRole;
  environment: Environment;
}

/** Remembers who makes the request, for its page and for the audit. */
export function setSignedIn(request: HttpRequest, operator: SignedIn): void {
  setViewer(request, operator);
  setActor(request, 'operator', operator.name);
}

/** Null before the sign-in. */
export const signedInOf = (request: HttpRequest): SignedIn | null => viewerOf(request) as SignedIn | null;

const KEPT = { 'Cache-Control': 'public, max-age=31536000, immutable' };

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

  /** While the server is upgraded, a page of the other version may ask for a file that this process does not have. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.answer ??= StaticAnswer.of(this.type, this.text);
    (await this.answer).send(request, reply, request.url === this.address ? KEPT : {});
  }
}

const STYLE = new Asset('/ops/console.css', 'text/css', CONSOLE_STYLE);

/** Every page works without it. */
const SCRIPT = new Asset(
  '/ops/console.js',
  'text/javascript',
  readFileSync(require.resolve('idiomorph/dist/idiomorph.min.js'), 'utf8') + readFrameFile('console.js'),
);

export const ASSETS = [STYLE, SCRIPT];

const HEAD_BEFORE_SIGN_IN = html`${ICON_LINK} <link rel="stylesheet" href="${STYLE.address}" />`;
const HEAD = html`${HEAD_BEFORE_SIGN_IN}
  <script src="${SCRIPT.address}" defer></script>`;

/** Only the console's style, its script and the queues' pages, whatever a receiver's response contains. */
const PAGE_HEADERS = {
  ...OPS_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; " +
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

const BRAND = brandOf('/ops');

/** Sends a page with its headers. The signed-in operator is known from the request. */
export function sendConsolePage(request: FastifyRequest, reply: FastifyReply, page: View): void {
  const operator = signedInOf(request);
  void reply.status(page.status ?? 200).headers(PAGE_HEADERS);
  if (operator && LIVE_HEADER in request.headers) return sendBody(request, reply, page);
  const content = operator ? shell(request, operator, page) : pageBeforeSignIn(page);
  void reply.send(documentOf(`${page.title} · Usher`, operator ? HEAD : HEAD_BEFORE_SIGN_IN, content));
}

/** What differs each time: the texts of times, which the script writes, and what proves where a form comes from. */
const VOLATILE = /(?<=<time[^>]*>).*?(?=<\/time>)|(?<=name="form" value=")[^"]*/gs;

/**
 * Answers a refresh: what has changed is all that is sent. It is compressed, unlike a whole page: pages of other sites
 * cannot send its header, so they cannot measure how well what they put into an address compresses with what is secret.
 */
function sendBody({ headers }: FastifyRequest, reply: FastifyReply, page: View): void {
  const { text } = bodyOf(page);
  const etag = `W/"${hash('sha256', text.replace(VOLATILE, ''), 'base64url')}"`;
  void reply.header('ETag', etag);
  if (headers['if-none-match'] === etag) return void reply.status(304).send();
  gzip(text, (_, zipped) => void reply.header('Content-Encoding', 'gzip').send(zipped));
}

const bodyOf = ({ title, body }: View): Html =>
  html`<div class="body">
    <h1>${title}</h1>
    ${body}
  </div>`;

/** A page without navigation. */
const pageBeforeSignIn = ({ title, body }: View): Html =>
  html`<main class="u-bare">
    ${BRAND}
    <div class="card">
      <h1>${title}</h1>
      ${body}
    </div>
  </main>`;

/** The operator's name leads to the own password. A request with HTTP Basic has no session that could end. */
function shell(request: FastifyRequest, { name, role, session, environment }: SignedIn, page: View): Html {
  const { section, query = '', isLive } = page;
  return shellOf({
    brand: BRAND,
    environment,
    bar: html`<form class="u-search" role="search" action="/ops" method="get">
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
        <a href="${PASSWORD_PATH}" title="Signed in as ${name}, role ${role}"
          >${name}${role === 'viewer' && ' (viewer)'}</a
        >
        ${session && postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
      </div>`,
    sections: Object.entries(SECTIONS).map(([key, title]) => ({
      address: key === 'overview' ? '/ops' : `/ops/${key}`,
      title,
      isCurrent: key === section,
    })),
    content: html`${
      isLive &&
      html`<p class="live" hidden>
        <span role="status">Updates every 10 s</span> <button type="button" class="quiet">Pause</button>
      </p>`
    }
    ${bodyOf(page)}`,
  });
}
